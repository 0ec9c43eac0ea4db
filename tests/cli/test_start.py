"""Starting the command line: what is loaded, and what an interrupt or a broken installation does."""

import ast
import inspect
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import netpurify
from netpurify.cli import options
from netpurify.contaminate import LAWS
from netpurify.data import names
from netpurify.experiments.figures import FIGURES
from netpurify.network import FAMILIES
from netpurify.paper.training import Regime

HEAVY = {"torch", "numba", "scipy", "numpy", "matplotlib", "pandas", "loky", "safetensors"}
LOADED = """
import json, sys
from netpurify.cli.app import run
found = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["netpurify", *words]
    found.append((run(), sorted({name.partition(".")[0] for name in sys.modules})))
print(json.dumps(found))
"""
PURIFY = ["recover", "absent.pt", "--factory", "models:build", "--data", "absent.npy", "-o", "out.safetensors"]
LIGHT = [
    ([], 2), (["--help"], 0), (["--version"], 0), (["nonsense"], 2), (["--nonsense"], 2),
    *(([command, "--help"], 0) for command in
      ("check", "recover", "project", "defend", "hunt", "unlearn", "verify", "contaminate", "diff", "demo", "reproduce",
       "study", "theory", "data")),
    (["data", "fetch", "--help"], 0), (["data", "fetch", "imagenet"], 2),
    (["recover"], 2), (["recover", "a.pt", "--batch", "0"], 2), (PURIFY, 2), ([*PURIFY, "--initial-seed", "1"], 2),
    (["purify", *PURIFY[1:]], 2), (["defend", *PURIFY[1:], "--rank", "3"], 2),
    (["unlearn", *PURIFY[1:], "--family", "aura"], 2), (["hunt", *PURIFY[1:-2]], 2),
    (["hunt", *PURIFY[1:-2], "--family", "aura"], 2),
    (["defend", *PURIFY[1:], "--strength", "much"], 2), (["project", *PURIFY[1:], "--rank", "x"], 2),
    ([*PURIFY, "--engine", "nope"], 2), ([*PURIFY, "--size", "wide"], 2), ([*PURIFY, "--size", "9" * 5000 + "x1"], 2),
    ([*PURIFY, "--mean", "a"], 2), ([*PURIFY, "--noise-floor", "inf"], 2),
    (["diff", "absent.pt", "absent.pt"], 2), (["verify", "absent", "--contaminated", "a", "--purified", "b"], 2),
    (["contaminate", "absent.pt", "-o", "out.safetensors", "--law", "gauss"], 2),
    (["contaminate", "absent.pt", "-o", "out.safetensors", "--share", "2"], 2),
    (["reproduce", "99"], 2), (["reproduce", "--quick", "--full"], 2), (["reproduce", "--engine", "nope"], 2),
    (["study", "astrology"], 2), (["study", "recovery", "--quick", "--full"], 2),
    (["theory", "--regime", "both"], 2), (["theory", "--sweep", "eps"], 2), (["theory", "--inputs", "absent.npy"], 2),
]  # fmt: skip


def start(code, *arguments, folder, **environment):
    path = os.pathsep.join([str(folder), *(part for part in sys.path if part)])
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )  # fmt: skip


@pytest.mark.slow
def test_help_and_refusals_load_no_library_of_the_work(tmp_path):
    done = start(LOADED, json.dumps([arguments for arguments, _ in LIGHT]), folder=tmp_path)
    for (arguments, code), (found, loaded) in zip(LIGHT, json.loads(done.stdout.splitlines()[-1]), strict=True):
        assert found == code, arguments
        assert not HEAVY & set(loaded), arguments
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_importing_the_package_loads_nothing_until_it_is_used(tmp_path):
    code = (
        "import sys, netpurify\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
        "print(netpurify.data.__name__, netpurify.experiments.__name__, netpurify.report.__name__)\n"
        "from netpurify import *\n"
        "print(purify is netpurify.network.purify, lad is sys.modules['netpurify.lad'], 'scipy.stats' in sys.modules)"
    )
    first, second, third = start(code, folder=tmp_path).stdout.splitlines()
    assert not HEAVY & set(first.split())
    assert second == "netpurify.data netpurify.experiments netpurify.report"
    assert third == "True True False"


def test_what_is_there_is_told_and_what_is_not_is_refused():
    assert set(netpurify.__all__) <= set(dir(netpurify))
    with pytest.raises(AttributeError, match="module 'netpurify' has no attribute 'purifie'"):
        _ = netpurify.purifie


def test_lazy_names_are_those_that_type_checkers_see():
    tree = ast.parse(inspect.getsource(netpurify))
    (guarded,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name for node in ast.walk(guarded) if isinstance(node, ast.ImportFrom) for alias in node.names}
    seen |= {"DisagreementError", "InputError", "NetpurifyError"}
    assert seen == set(netpurify.__all__)


def test_names_that_the_command_line_knows_are_those_of_the_library():
    assert tuple(LAWS.classes) == options.LAWS
    assert tuple(FAMILIES) == options.FAMILIES
    assert tuple(FIGURES) == options.FIGURES
    assert Regime.__args__ == options.REGIMES
    assert set(options.DATA_SETS) == {name for name in names() if name != "mnist-sample"}


@pytest.mark.parametrize(("module", "arguments"), [("typer", ["--version"]), ("torch", ["theory"])])
def test_an_installation_that_is_not_whole_is_no_finding(tmp_path, module, arguments):
    (tmp_path / f"{module}.py").write_text("raise ImportError('a library is\\x1b missing')")
    done = start("from netpurify.cli import main; main()", *arguments, folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "a library is" in done.stderr
    assert "not installed whole" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize(("module", "arguments"), [("typer", ["--version"]), ("torch", ["theory"])])
def test_an_interrupt_while_modules_load_is_an_interrupt(tmp_path, module, arguments):
    """The module stands for one that takes its time; the key is pressed while it is loading."""
    (tmp_path / f"{module}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)"
    )
    # A process that a shell starts in the background ignores the key, and Python with it.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    done = start(f"{listen}\nfrom netpurify.cli import main; main()", *arguments, folder=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupt_while_the_process_cleans_up_leaves_no_traceback(tmp_path):
    code = (
        "import atexit, os, signal, time\n"
        "def late(): os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n"
        "atexit.register(late)\n"
        "from netpurify.cli import main; main()"
    )
    done = start(code, "--version", folder=tmp_path)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")  # which a shell calls 130
    assert done.stdout.startswith("netpurify ")


def test_the_module_can_be_run():
    done = subprocess.run(
        [sys.executable, "-m", "netpurify", "--version"], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(netpurify.__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout == f"netpurify {netpurify.__version__}\n"
