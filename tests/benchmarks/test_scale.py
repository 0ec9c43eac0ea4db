"""Cost against size: exponents, table, figure, and the stream of many columns."""

import pytest

import lad_fresh
import lad_stream
from lad_cases import Case, gaussian
from lad_scale import GRID, Point, draw, exponent, exponents, read, write
from netpurify import lad

POINTS = [
    Point(version, kind, grows, *sizes, ms=factor * sizes["kqp".index(grows)] ** 1.5, certified=1.0)
    for version, factor in (("before", 4.0), ("netpurify", 1.0))
    for kind in ("dense noise", "recovered")
    for grows in GRID
    for sizes in GRID[grows]
]


def test_the_exponent_is_that_of_the_largest_points():
    curve = [Point("netpurify", "recovered", "q", 9, q, 7, ms=max(100.0, q**2.0), certified=1.0) for q in (1, 5, *TENS)]
    assert exponent(curve) == pytest.approx(2.0)
    assert exponent(curve[::-1]) == pytest.approx(2.0)


TENS = (10, 20, 40, 80)


def test_a_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "new" / "table.csv"
    write(POINTS, path)
    assert read(path) == POINTS


def test_every_curve_is_told():
    lines = exponents(POINTS).splitlines()
    assert len(lines) == 12
    assert "recovered, netpurify: ms a column ~ k^1.50 (1.4e+03 to 2.02e+06 ms, at least 100.0% certified)" in lines


@pytest.mark.slow
def test_the_figure_has_every_curve(tmp_path):
    draw(POINTS, tmp_path / "scale.svg")
    text = (tmp_path / "scale.svg").read_text()
    assert text.count("dense noise, before: ") == 3
    assert text.count("recovered: ") == 3


@pytest.fixture
def small(monkeypatch):
    """A stream of blocks of 40 columns of 30 x 4."""
    monkeypatch.setattr(lad_stream, "MEMORY", Case("30x4", 0.1, gaussian(30, 4)))
    for name, value in {"BLOCK": 40, "BLOCKS": 2, "CHECKED": 7}.items():
        monkeypatch.setattr(lad_stream, name, value)
    return lad.Design.prepare(lad_stream.MEMORY.matrix())


def test_a_part_counts_its_columns_and_checks_some(small):
    part = lad_stream.part(small, 80, 2, 1, lad_fresh.memory("VmRSS"))
    assert (part["columns"], part["certified"]) == (80, 80)
    assert part["recovered"] > 60
    assert (part["checked"], part["confirmed"]) == (7, 7)
    assert part["wall"] > 0.0


def test_a_stream_goes_on_where_it_was(small, tmp_path, monkeypatch, capsys):
    assert small.rank == 4
    path = tmp_path / "stream.part"
    monkeypatch.setattr("sys.argv", ["lad_stream.py", "--columns", "200", "--threads", "1", "--kept", str(path)])
    asked = []

    def stopped(design, start, *rest):
        asked.append(start)
        if start == 160:
            raise KeyboardInterrupt
        return part(design, start, *rest)

    part = lad_stream.part
    monkeypatch.setattr(lad_stream, "part", stopped)
    with pytest.raises(KeyboardInterrupt):
        lad_stream.main()
    monkeypatch.setattr(lad_stream, "part", lambda *given: asked.append(given[1]) or part(*given))
    lad_stream.main()
    assert asked == [0, 0, 80, 160, 0, 160]  # a trial comes first
    out = capsys.readouterr().out
    assert out.startswith("200 columns of 30x4 eps 0.1: ")
    assert "200 certified" in out
    assert not path.exists()
