"""The table: every scalar reads back as itself, whatever it looks like; sums leave out what is missing."""

import math
import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netpurify.errors import InputError, JournalError
from netpurify.findings import group, read_table, select, summarise, write_table

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
CONFUSABLE = [
    "", "1", "-1.5", "1e5", "nan", "-inf", "true", "True", "null", '"', '"1"', 'a"b,c', " 1", "٣", "a\r\nb", "\r", "\n",
    "\0", "\ud800",
]  # fmt: skip


def bits(value):
    return struct.pack("d", value) if isinstance(value, float) and not math.isnan(value) else repr(value)


def round_trip(tmp_path, values):
    write_table(tmp_path / "some.csv", [{"value": value, "last": 1} for value in values])
    return [row["value"] for row in read_table(tmp_path / "some.csv")]


@pytest.mark.slow
@settings(deadline=None)  # a busy disk takes its time to confirm a write
@given(st.lists(SCALARS))
def test_every_scalar_reads_back_as_itself(tmp_path_factory, values):
    back = round_trip(tmp_path_factory.mktemp("table"), values)
    assert [bits(value) for value in back] == [bits(value) for value in values]


def test_texts_that_look_like_something_else_stay_texts(tmp_path):
    assert round_trip(tmp_path, CONFUSABLE) == CONFUSABLE


def test_columns_stand_where_rows_first_use_them(tmp_path):
    write_table(tmp_path / "some.csv", [{"a": 1, "seconds": 0.5, "failure": None}, {"b": 2.0}])
    assert (tmp_path / "some.csv").read_text() == "a,b,seconds,failure\n1,,0.5,\n,2.0,,\n"


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    write_table(tmp_path / "some.csv", [{"a": 1}])
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(JournalError, match="No space left on device; make room"):
        write_table(tmp_path / "some.csv", [{"a": 2}])
    assert [path.name for path in tmp_path.iterdir()] == ["some.csv"]
    assert read_table(tmp_path / "some.csv")[0]["a"] == 1


def test_tables_that_are_not_there_or_cut_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such table"):
        read_table(tmp_path / "some.csv")
    (tmp_path / "some.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(InputError, match="must have 2 values; line 3 has 1"):
        read_table(tmp_path / "some.csv")


ROWS = [
    {"width": 8, "eps": 0.1, "value": 1.0, "failure": None},
    {"width": 16, "eps": 0.1, "value": True, "failure": None},
    {"width": 8, "eps": 0.1, "value": 4.0, "failure": None},
    {"width": 8, "eps": 0.1, "value": float("nan"), "failure": None},
    {"width": 8, "eps": 0.2, "value": None, "failure": "OSError: gone"},
]


def test_rows_are_chosen_and_grouped_in_order():
    assert select(ROWS, width=8, failure=None) == [ROWS[0], ROWS[2], ROWS[3]]
    assert list(group(ROWS, ["eps", "width"])) == [(0.1, 8), (0.1, 16), (0.2, 8)]


def test_sums_leave_out_what_is_missing():
    result = summarise(ROWS, ["width", "eps"], "value")
    many, one, none = result[8, 0.1], result[16, 0.1], result[8, 0.2]
    assert (many.count, many.mean, many.low, many.median, many.high) == (2, 2.5, 1.75, 2.5, 3.25)
    assert many.deviation == pytest.approx(math.sqrt(4.5))
    assert (one.count, one.mean, math.isnan(one.deviation)) == (1, 1.0, True)
    assert (none.count, math.isnan(none.mean), math.isnan(none.median)) == (0, True, True)


def test_texts_cannot_be_summed_up():
    with pytest.raises(InputError, match="failure must hold numbers"):
        summarise(ROWS, ["width"], "failure")


def test_a_trial_counts_once_however_many_rows_it_has():
    rows = [{"trial": 0, "k": 50, "value": 0.3}, {"trial": 0, "k": 100, "value": 0.1}, {"trial": 1, "value": 0.7}]
    pooled = summarise([*rows, {"trial": 1, "value": None}], [], "value")[()]
    assert (pooled.count, pooled.mean) == (2, pytest.approx(0.45))
    assert pooled.deviation == pytest.approx(0.5 / math.sqrt(2.0))
    repeated = summarise([{"trial": 0, "value": 0.1}] * 10, [], "value")[()]
    assert (repeated.count, repeated.mean) == (1, 0.1)


def test_equal_numbers_have_no_spread():
    assert summarise([{"value": 0.1}] * 6, [], "value")[()].deviation == 0.0
