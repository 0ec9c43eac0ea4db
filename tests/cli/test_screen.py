"""Whatever names are in files, a terminal shows them as letters: nothing clears it or paints a false verdict on it."""

import json
import sys
import unicodedata

import pytest
import torch
from torch import nn

from netpurify import checkpoint
from netpurify.cli import screen
from netpurify.cli.screen import Bar, Waiting, complain, note, show_line, show_table, visible

EVIL = "a\x1b[2J\x1b]0;t\x07\u202eb\u2028c\x9bd\x7f\x00\r[/x][bold]:smile:\nsound: every fit is a proven minimum"
FACTORY = f"""
from collections import OrderedDict
from torch import nn
def build(width=40):
    parts = [({EVIL!r}, nn.Linear(60, width)), ("r", nn.ReLU()), ("last", nn.Linear(width, 5))]
    return nn.Sequential(OrderedDict(parts))
"""


def tell(waiting):
    for _ in range(2):
        waiting.begin()
        waiting.end()


def hidden(text):
    """What a reader would not see of a text, line feeds aside."""
    return {letter for letter in text if letter != "\n" and not letter.isprintable()}


def lines(done):
    return [*done.out.splitlines(), *done.err.splitlines()]


@pytest.fixture
def evil(files, monkeypatch):
    (files / "evil_networks.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(files)
    for name in ("initial", "trained", "contaminated"):
        state = checkpoint.load_weights(f"{name}.safetensors")
        places = {"0": EVIL, "2": "last"}
        found = {f"{places[key[0]]}{key[1:]}": value for key, value in state.items()}
        checkpoint.save_weights(found, files / f"{name}.safetensors")
    yield files
    sys.modules.pop("evil_networks", None)


@pytest.mark.slow
def test_every_character_that_is_not_printable_becomes_an_escape():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = visible(everything)
    assert shown.isprintable()
    for letter in everything[:0x3000:7]:
        kind = unicodedata.category(letter)
        assert (visible(letter) == letter) == (letter == " " or kind[0] not in "CZ"), letter
    assert visible("\x1b\x9b\x7f\x00\u202e\ud800\U000e0041") == r"\x1b\x9b\x7f\x00\u202e\ud800\U000e0041"
    assert visible("naïve 语言 ≲ ✓") == "naïve 语言 ≲ ✓"


@pytest.mark.parametrize("colour", [False, True])
def test_every_way_to_the_screen(capsys, monkeypatch, colour):
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal, where rich paints, but no name does
    show_line(EVIL)
    show_table(EVIL, (EVIL,), [(EVIL,)])
    note(EVIL)
    complain(EVIL)
    with Bar(EVIL) as bar:
        bar.to(1, 1, EVIL)
    with Bar(EVIL) as bar:
        tell(Waiting(EVIL))
    tell(Waiting(EVIL))
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "\x1b[2J" not in text
    assert "\x1b]0;" not in text
    assert not hidden(text) - {"\x1b", "\r"}
    if not colour:
        assert not hidden(text)
        assert text.count(r"[/x][bold]:smile:") >= 7
    assert not [line for line in text.splitlines() if line.startswith("sound")]


@pytest.mark.slow
def test_commands_show_names_of_tensors_escaped(run, evil):
    common = ["--factory", "evil_networks:build", "--data", "inputs.npy", "--initial", evil / "initial.safetensors"]
    out, proof = evil / "out\x1b[2J.safetensors", evil / "proof\x9b.safetensors"
    contaminated = evil / "contaminated.safetensors"
    found = [
        run("check", contaminated, *common),
        run("recover", contaminated, *common, "-o", out, "--proof", proof, "--show", "100"),
        run("project", contaminated, *common[:4], "-o", evil / "p.safetensors"),
        run("defend", evil / "trained.safetensors", *common[:4], "-o", evil / "d.safetensors", "--strength", "0.1",
            "--report", evil / "page.html"),
        run("verify", proof, "--contaminated", contaminated, "--purified", out, *common[4:]),
        run("diff", contaminated, out),
        run("contaminate", contaminated, "-o", evil / "hit.safetensors"),
        run("diff", contaminated, "trained.safetensors"),
        run("recover", contaminated, *common, "-o", evil / "x.safetensors", "--factory", "small_networks:build"),
        run("recover", contaminated, *common, "-o", evil / "x.safetensors", "--layer", EVIL[1:]),
        run("check", contaminated, *common, "--factory-args", '{"\x1b[2J": 1}'),
        run("check", evil / "\x1b[2J\udc9b.pt", *common),
        run("contaminate", contaminated, "-o", evil / "x.safetensors", "--name", "\x1b[2J"),
        run("recover", "--\x1b[2J"),
    ]  # fmt: skip
    assert [done.code for done in found] == [0, 1, 0, 0, 0, 1, 0, 1, 2, 2, 2, 2, 2, 2], [done.err for done in found]
    for done in found:
        assert not hidden(done.out + done.err)
        assert r"\x1b[2J" in done.out + done.err
        assert not [line for line in lines(done) if line.startswith("sound") and "changed weight" not in line]


def test_json_and_types_in_files_are_escaped(run, evil):
    done = run("diff", evil / "contaminated.safetensors", "trained.safetensors", "--json", "-")
    assert not hidden(done.out)
    assert EVIL + ".weight" in json.loads(done.out)["only_first"]
    header = b'{"w":{"dtype":"F\\u001b[2J","shape":[1],"data_offsets":[0,4]}}'
    (evil / "type.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    torch.save({"w": nn.Parameter(torch.zeros(1)), "\x1b[2J": 3}, evil / "odd.pt")
    for name in ("type.safetensors", "odd.pt"):
        done = run("diff", evil / name, "trained.safetensors")
        assert done.code == 2
        assert not hidden(done.err)
        assert r"\x1b[2J" in done.err


def test_a_fault_of_ours_shows_its_traceback_escaped(run, evil, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError(EVIL)

    monkeypatch.setattr("netpurify.contaminate.difference", broken)
    done = run("diff", evil / "contaminated.safetensors", "trained.safetensors")
    assert done.code == 3
    assert not hidden(done.err)
    assert "\n  File " in done.err


def test_warnings_are_one_line_without_controls(capsys):
    screen.tell_warning(UserWarning(EVIL), UserWarning, "file.py", 3)
    shown = capsys.readouterr().err
    assert shown.startswith("UserWarning: a\\x1b[2J")
    assert not hidden(shown)
    assert shown.count("\n") == 1


def test_a_word_of_a_hostile_name_never_begins_a_line(capsys):
    # However wide the other columns are: one of these widths would fold the name just before the word.
    for beside in range(20, 60):
        show_table("", ("layer", "kind", "time"), [(EVIL, "x" * beside, "y" * beside), ("last", "Linear", "1 s")])
    printed = capsys.readouterr().out.splitlines()
    assert not [line for line in printed if line.startswith("sound")]
    assert [line for line in printed if line.startswith(r"a\x1b[2J")]
