"""Bad input: exit code 2, one message with what was expected and what came, no traceback, nothing written."""

import os
import pickle

import numpy as np
import pytest
import torch

from netpurify import checkpoint

GOOD = ["--factory", "small_networks:build", "--data", "inputs.npy", "--initial-seed", "5"]
WEIGHTS = "contaminated.safetensors"


class Exploit:
    def __reduce__(self):
        return os.mkdir, ("exploited",)


@pytest.fixture
def spoilt(files):
    """Files that no command should take."""
    torch.save({"0.weight": Exploit()}, files / "exploit.pt")
    (files / "bare.pkl").write_bytes(pickle.dumps(Exploit()))
    (files / "text.safetensors").write_bytes(b"not weights at all, only words")
    (files / "empty.pt").write_bytes(b"")
    good = np.load("inputs.npy")
    holed = good.copy()
    holed[2, 3] = np.nan
    np.save(files / "nan.npy", holed)
    np.save(files / "none.npy", good[:0])
    np.save(files / "narrow.npy", good[:, :7])
    (files / "folder").mkdir()
    (files / "locked_module_of_tests.py").write_text("import no_such_library\n")
    state = checkpoint.load_weights("initial.safetensors")
    checkpoint.save_weights({name: torch.full_like(value, np.nan) for name, value in state.items()},
                            files / "hollow.safetensors")  # fmt: skip
    checkpoint.save_weights({"other": torch.zeros(3)}, files / "other.safetensors")
    checkpoint.save_weights({**state, "0.weight": torch.zeros(40, 7)}, files / "shapes.safetensors")
    for kind in ("int64", "int8", "bool", "uint16", "complex64", "float8_e4m3fn"):
        odd = {name: (2.0 * value + 1.0).to(getattr(torch, kind)) for name, value in state.items()}
        checkpoint.save_weights(odd, files / f"{kind}.safetensors")
    (files / "there.safetensors").write_bytes(b"precious")
    return files


PURIFY = [
    (["absent.safetensors", *GOOD], "No such file"),
    (["{}/exploit.pt", *GOOD], "exploit.pt"),
    (["{}/bare.pkl", *GOOD], "bare pickle, which can run code"),
    (["{}/text.safetensors", *GOOD], "header"),
    (["{}/empty.pt", *GOOD], "the file is empty"),
    (["{}/other.safetensors", *GOOD], "missing: 0.weight, 0.bias, 2.weight, 2.bias; unexpected: other"),
    (["{}/shapes.safetensors", *GOOD], "mis-shaped: 0.weight [40, 7] instead of [40, 60]"),
    ([WEIGHTS, *GOOD, "--factory-args", '{"width": 41}'], "mis-shaped: 0.weight [40, 60] instead of [41, 60]"),
    ([WEIGHTS, *GOOD, "--factory-args", "width=41"], "must be a JSON object"),
    ([WEIGHTS, *GOOD, "--factory-args", "[" * 100_000], "must be a JSON object"),
    ([WEIGHTS, *GOOD, "--factory-args", "[41]"], "must be a JSON object"),
    ([WEIGHTS, *GOOD, "--factory-args", '{"depth": 2}'], "it raised TypeError"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks"], "must be package.module:function"),
    ([WEIGHTS, *GOOD, "--factory", "no_networks:build"], "there is no module 'no_networks'"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:built"], "small_networks has no 'built'"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:broken"], "it raised RuntimeError: no such weather"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:leaving"], "it raised SystemExit: 0"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:number"], "it returned int"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:ready"], "must be a function that builds the network"),
    ([WEIGHTS, *GOOD[:4]], "recover needs the initial weights"),
    ([WEIGHTS, *GOOD[:4]], "netpurify project and netpurify defend do without"),
    ([WEIGHTS, *GOOD, "--initial", "initial.safetensors"], "exclude each other"),
    ([WEIGHTS, *GOOD[:4], "--initial", WEIGHTS], "is the file to purify itself"),
    ([WEIGHTS, *GOOD[:4], "--initial", "{}/hollow.safetensors"], "must be finite"),
    ([WEIGHTS, *GOOD[:4], "--initial", "{}/other.safetensors"], "must be of the same network"),
    ([WEIGHTS, *GOOD[:4], "--initial", "absent.pt"], "No such file"),
    ([WEIGHTS, *GOOD, "--initial-seed", "-1"], "Invalid value for '--initial-seed'"),
    ([WEIGHTS, *GOOD, "--data", "{}/nan.npy"], "finite"),
    ([WEIGHTS, *GOOD, "--data", "{}/none.npy"], "at least one input"),
    ([WEIGHTS, *GOOD, "--data", "{}/narrow.npy"], "called with [[8, 7]] it raised RuntimeError"),
    ([WEIGHTS, *GOOD, "--data", "absent.npy"], "absent.npy"),
    ([WEIGHTS, *GOOD, "--size", "wide"], "--size must be height x width"),
    ([WEIGHTS, *GOOD, "--mean", "a,b"], "--mean must be numbers"),
    ([WEIGHTS, *GOOD, "--std", "0"], "std must be above 0"),
    ([WEIGHTS, *GOOD, "--layer", "7"], "'7' is none of ['0', '2']"),
    ([WEIGHTS, *GOOD, "--policy", "wash"], "No such option: --policy"),
    ([WEIGHTS, *GOOD, "--rank", "3"], "No such option: --rank"),
    ([WEIGHTS, *GOOD, "--noise-floor", "-1"], "Invalid value for '--noise-floor'"),
    ([WEIGHTS, *GOOD, "--noise-floor", "inf"], "--noise-floor must be a finite number"),
    ([WEIGHTS, *GOOD, "--decay", "inf"], "--decay must be a finite number"),
    ([WEIGHTS, *GOOD, "--batch", "0"], "Invalid value for '--batch'"),
    ([WEIGHTS, *GOOD, "--batch", "1" + 30 * "0"], "Invalid value for '--batch'"),
    ([WEIGHTS, *GOOD, "--limit", "1" + 30 * "0"], "Invalid value for '--limit'"),
    ([WEIGHTS, *GOOD, "--size", 5000 * "9" + "x1"], "--size must be height x width"),
    ([WEIGHTS, *GOOD, "--engine", "abacus"], "engine must be"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:ending"], "it raised SystemExit: 0"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:stumbling"], "it raised KeyError: 'no such key'"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:closing"], "it raised GeneratorExit: closed"),
    ([WEIGHTS, *GOOD, "--factory", "small_networks:closed"], "must build the network; it raised GeneratorExit: closed"),
    *(
        (["{}/" + kind + ".safetensors", *GOOD], f"0.weight of torch.{kind}")
        for kind in ("int64", "int8", "bool", "uint16", "complex64")
    ),
    (["{}/float8_e4m3fn.safetensors", *GOOD], "float8_e4m3fn"),
    *(
        ([WEIGHTS, *GOOD[:4], "--initial", "{}/" + kind + ".safetensors"], f"0.weight is torch.{kind}")
        for kind in ("float8_e4m3fn", "complex64", "int64", "bool")
    ),
    ([WEIGHTS, *GOOD, "--jobs", "2"], "--jobs is an option of --engine"),
    ([WEIGHTS, *GOOD, "--proof", "{}/out.safetensors"], "is named twice"),
    ([WEIGHTS, *GOOD, "--json", "{}/absent/out.json"], "there is no folder"),
    ([WEIGHTS, *GOOD, "--report", "{}/folder"], "is a folder"),
    ([WEIGHTS, *GOOD, "--json", "inputs.npy"], "is an input, which is never overwritten"),
    ([WEIGHTS, *GOOD, "--proof", "{}/there.safetensors"], "is there already"),
    ([WEIGHTS, *GOOD, "--proof", "{}/proof.bin"], "ends in .safetensors"),
]


@pytest.mark.parametrize(
    ("rank", "message"),
    [("many", "--rank must be a number of directions"), ("0", "at least 1"), ("1.5", "between 0 and 1")],
)
def test_project_refuses_ranks_that_mean_nothing(run, files, rank, message):
    done = run("project", WEIGHTS, *GOOD, "--rank", rank, "-o", files / "out.safetensors")
    assert done.code == 2
    assert message in told(done)


@pytest.mark.parametrize(("arguments", "message"), PURIFY, ids=[message[-60:] for _, message in PURIFY])
def test_recover_refuses(run, spoilt, made, arguments, message):
    before = {path: path.read_bytes() for path in [*made.iterdir(), *spoilt.iterdir()] if path.is_file()}
    done = run("recover", *(argument.replace("{}", str(spoilt)) for argument in arguments), "-o",
               spoilt / "out.safetensors")  # fmt: skip
    assert done.code == 2, done.out
    assert message in told(done)
    assert "Traceback" not in done.err
    for path, content in before.items():
        assert path.read_bytes() == content
    assert {path for path in [*made.iterdir(), *spoilt.iterdir()] if path.is_file()} == set(before)
    assert not (made / "exploited").exists()


def told(done):
    """The message without the frame that usage errors have."""
    return " ".join(done.err.replace("│", " ").split())


def test_module_that_cannot_be_imported_names_its_own_problem(run, spoilt, monkeypatch):
    monkeypatch.syspath_prepend(spoilt)
    done = run("check", WEIGHTS, *GOOD, "--factory", "locked_module_of_tests:build")
    assert done.code == 2
    assert "No module named 'no_such_library'" in done.message


def test_network_without_layers_to_purify_writes_nothing(run, spoilt):
    checkpoint.save_weights({"weight": torch.tensor([1.1, 1.2, 1.3])}, spoilt / "norm.safetensors")
    given = ["--factory", "small_networks:scaling", *GOOD[2:]]
    done = run("recover", spoilt / "norm.safetensors", *given, "-o", spoilt / "out.safetensors")
    assert done.code == 2
    assert "at least one layer must be open to purification" in done.message
    assert not (spoilt / "out.safetensors").exists()


VERIFY = [
    (["{}/absent.safetensors", "--initial", "initial.safetensors"], "No such file"),
    (["inputs.npy", "--initial", "initial.safetensors"], "like neither"),
    (["trained.safetensors", "--initial", "initial.safetensors"], "must be a proof that netpurify wrote"),
    (["{}/proof.safetensors"], "this proof needs the initial weights"),
    (["{}/proof.safetensors", "--initial-seed", "5"], "--initial-seed needs --factory"),
    (["{}/proof.safetensors", "--initial", "initial.safetensors", "--initial-seed", "5"], "exclude each other"),
    (["{}/forged.safetensors", "--initial", "initial.safetensors"], "must be a whole proof"),
]


@pytest.mark.parametrize(("arguments", "message"), VERIFY, ids=[message for _, message in VERIFY])
def test_verify_refuses(run, files, arguments, message):
    run("recover", WEIGHTS, *GOOD, "-o", files / "out.safetensors", "--proof", files / "proof.safetensors")
    checkpoint.save_weights({"0.units": torch.zeros(1)}, files / "forged.safetensors",
                            metadata={"netpurify.proof": '{"version": 1, "blocks": [{}]}'})  # fmt: skip
    done = run("verify", *(argument.replace("{}", str(files)) for argument in arguments), "--contaminated", WEIGHTS,
               "--purified", files / "out.safetensors")  # fmt: skip
    assert done.code == 2, done.out
    assert message in told(done)
    assert "Traceback" not in done.err


CONTAMINATE = [
    (["--law", "gauss"], "the law must be one of normal, uniform"),
    (["--law", "uniform"], "needs the options low, high"),
    (["--set", "sd"], "--set must be KEY=VALUE"),
    (["--set", "spread=1"], "has the options mean, sd; got spread"),
    (["--set", "sd=-1"], "sd must be at least 0"),
    (["--share", "1.5"], "share must be a number in [0, 1]; got 1.5"),
    (["--share", "nan"], "share must be a number in [0, 1]; got nan"),
    (["--name", "0.weigth"], "did you mean 0.weight"),
    (["--json", "trained.safetensors"], "is an input"),
    (["-o", "trained.safetensors", "--force"], "is an input"),
    (["-o", "{}/absent/out.safetensors"], "there is no folder"),
    (["-o", "{}/out.pt"], "ends in .safetensors"),
    (["-o", "{}/there.safetensors"], "is there already"),
]


@pytest.mark.parametrize(("arguments", "message"), CONTAMINATE, ids=[message for _, message in CONTAMINATE])
def test_contaminate_refuses(run, spoilt, arguments, message):
    more = [argument.replace("{}", str(spoilt)) for argument in arguments]
    done = run("contaminate", "trained.safetensors", "-o", spoilt / "out.safetensors", *more)
    assert done.code == 2, done.out
    assert message in told(done)
    assert not (spoilt / "out.safetensors").exists()
    assert (spoilt / "there.safetensors").read_bytes() == b"precious"


@pytest.mark.parametrize("kind", ["int64", "bool", "complex64"])
def test_contaminate_refuses_a_file_in_which_it_would_alter_nothing(run, spoilt, kind):
    done = run("contaminate", spoilt / f"{kind}.safetensors", "-o", spoilt / "out.safetensors")
    assert done.code == 2, done.out
    assert f"it holds torch.{kind} only" in done.message
    assert not (spoilt / "out.safetensors").exists()


@pytest.mark.usefixtures("spoilt")
def test_an_unknown_engine_is_refused_before_the_factory_is_run(run):
    done = run("recover", WEIGHTS, *GOOD, "--factory", "no_networks:build", "--engine", "nope", "-o", "out.safetensors")
    assert done.code == 2
    assert "engine must be" in done.message


def test_want_of_memory_is_no_fault_of_ours(run, files, monkeypatch):
    for problem in (MemoryError("4 TB"), RuntimeError("DefaultCPUAllocator: can't allocate memory: 4 TB")):
        monkeypatch.setattr("netpurify.network.purify", lambda *_, problem=problem, **__: throw(problem))
        done = run("recover", WEIGHTS, *GOOD, "-o", files / "out.safetensors")
        assert done.code == 2
        assert "not enough memory" in done.message
        assert "Traceback" not in done.err


def throw(problem):
    raise problem


def test_diff_refuses_what_is_no_file_of_weights(run, spoilt):
    for path in ("exploit.pt", "absent.pt", "folder"):
        done = run("diff", "trained.safetensors", spoilt / path)
        assert done.code == 2, path
        assert path in done.message


@pytest.mark.parametrize("problem", [ZeroDivisionError, EOFError, GeneratorExit])
def test_own_faults_end_with_code_3(run, files, monkeypatch, problem):
    def broken(*_, **__):
        raise problem

    monkeypatch.setattr("netpurify.network.purify", broken)
    done = run("recover", WEIGHTS, *GOOD, "-o", files / "out.safetensors")
    assert done.code == 3
    assert "this is a fault of netpurify" in done.message
    assert problem.__name__ in done.err


def test_an_interrupt_within_a_command_ends_with_code_130(run, files, monkeypatch):
    monkeypatch.setattr("netpurify.network.purify", lambda *_, **__: throw(KeyboardInterrupt()))
    assert run("recover", WEIGHTS, *GOOD, "-o", files / "out.safetensors").code == 130
    assert not (files / "out.safetensors").exists()
