"""While the solver compiles, the command line says so: once in a pipe, with something that moves on a terminal."""

import numba
import pytest

from netpurify.cli import compiling as module
from netpurify.cli.compiling import compiling
from netpurify.cli.screen import Bar
from netpurify.errors import InputError

TOLD = "compiling the solver"


@pytest.fixture(autouse=True)
def nothing_was_said():
    """Whatever other tests of this process have compiled."""
    module._waiting.cache_clear()


def compile_something():
    """Two compilations of functions that were never compiled before, as the solver's first call does."""
    for number in range(2):
        assert numba.njit(lambda value, number=number: value + number)(1) == 1 + number


def test_said_once_in_a_pipe(capsys):
    with compiling():
        assert capsys.readouterr().err == ""
        compile_something()
        with Bar("purify") as bar:
            compile_something()
            bar.to(1, 1, "")
    with compiling():  # the command goes on
        compile_something()
    assert capsys.readouterr().err.count(TOLD) == 1


def test_nothing_is_said_when_nothing_is_compiled_or_when_asked_to_be_quiet(capsys):
    with compiling():
        pass
    with compiling(quiet=True):
        compile_something()
    compile_something()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("bar", [False, True])
def test_something_moves_on_a_terminal_and_goes_when_it_is_done(capsys, monkeypatch, bar):
    monkeypatch.setenv("FORCE_COLOR", "1")  # which rich takes for a terminal
    monkeypatch.setenv("TERM", "xterm")
    with compiling():
        if bar:
            with Bar("purify") as shown:
                compile_something()
                shown.to(1, 2, "1 of 2 layers")
                assert Bar.shown is shown
        else:
            compile_something()
    assert Bar.shown is None
    text = capsys.readouterr().err
    assert TOLD in text
    assert TOLD not in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "function", "arguments"),
    [
        ("check", "network.check", ["--factory", "small_networks:build", "--data", "inputs.npy"]),
        ("project", "network.purify", ["--factory", "small_networks:build", "--data", "inputs.npy", "-o",
                                       "{}/out.safetensors"]),
        ("theory", "paper.theory.examine", []),
        ("demo", "experiments.demo.recovery", ["--folder", "{}/demo"]),
    ],
)  # fmt: skip
def test_commands_that_solve_say_when_the_solver_is_compiled(run, files, monkeypatch, command, function, arguments):
    def first(*_, **__):
        compile_something()
        raise InputError("that is all")

    monkeypatch.setattr(f"netpurify.{function}", first)
    weights = ["trained.safetensors"] if command in ("check", "project") else []
    done = run(command, *weights, *(argument.format(files) for argument in arguments))
    assert done.code == 2, done.err
    assert done.err.count(TOLD) == 1
