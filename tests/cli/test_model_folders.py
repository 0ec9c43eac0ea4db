"""Commands on Hugging Face folders: read as a file is, and written with the same shards."""

import json
import shutil

import pytest
import torch

from netpurify import checkpoint
from netpurify.cli.model_folders import save_folder
from netpurify.errors import InputError
from tests.checkpoint.model_folders import INDEX, write_shards

WEIGHTS = "contaminated.safetensors"


@pytest.fixture
def folder(files):
    """The contaminated network in two shards, with a configuration, a program, and other weights beside it."""
    state = checkpoint.load_weights(WEIGHTS)
    first = {name: value for name, value in state.items() if name.startswith("0.")}
    second = {name: value for name, value in state.items() if name not in first}
    made = write_shards(files / "model", {"model-1.safetensors": first, "model-2.safetensors": second})
    (made / "config.json").write_text("{}")
    (made / "modeling.py").write_text("raise SystemExit")
    torch.save(state, made / "pytorch_model.bin")
    return made


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_folder_is_recovered_into_a_folder_with_the_same_shards(run, files, folder, common):
    more = ["--initial", "initial.safetensors"]
    proof, before, out = files / "proof.safetensors", contents(folder), files / "repaired"
    whole = run("recover", WEIGHTS, *common, *more, "-o", files / "out.safetensors", "--proof", files / "p.safetensors")
    done = run("recover", folder, *common, *more, "-o", out, "--proof", proof)
    assert done.code == whole.code == 1
    assert f"written: {out}" in done.out
    assert "not copied" in done.message
    assert "modeling.py, pytorch_model.bin" in done.message
    assert sorted(contents(out)) == ["config.json", "model-1.safetensors", "model-2.safetensors", INDEX]
    assert (out / INDEX).read_bytes() == before[INDEX]
    expected = checkpoint.digest(checkpoint.load_weights(files / "out.safetensors"))
    assert checkpoint.digest(checkpoint.load_weights(out)) == expected
    assert checkpoint.load_metadata(out)["format"] == "pt"
    provenance = json.loads(checkpoint.load_metadata(out)["netpurify"])
    assert provenance == json.loads(checkpoint.load_metadata(files / "out.safetensors")["netpurify"])
    assert contents(folder) == before
    sound = run("verify", proof, "--contaminated", folder / INDEX, "--purified", out, *more)
    assert (sound.code, sound.out.splitlines()[-1][:6]) == (0, "sound:")
    assert run("recover", folder, *common, *more, "-o", files / "whole.safetensors").code == 1
    assert run("diff", files / "whole.safetensors", out).code == 0


@pytest.mark.slow
def test_folders_are_checked_and_compared_and_other_weights_are_named(run, files, folder, common):
    checks = [run("check", weights, *common, "--initial-seed", "5", "--quiet") for weights in (folder, WEIGHTS)]
    assert (checks[0].code, checks[0].out) == (checks[1].code, checks[1].out)
    done = run("diff", folder, WEIGHTS)
    assert done.code == 0
    assert f"may hold weights too, in {folder}: pytorch_model.bin" in done.message
    assert run("diff", folder, WEIGHTS, "--quiet").err == ""
    assert run("diff", folder / INDEX, "initial.safetensors", "--quiet").code == 1
    assert run("contaminate", folder, "-o", files / "hit.safetensors").code == 0
    assert run("contaminate", folder, "-o", files / "hit", "--json", files / "hit.json").code == 0
    assert run("contaminate", folder, "-o", files / "hit").code == 2
    assert (files / "hit" / "model-2.safetensors").exists()
    assert run("diff", files / "hit", files / "hit.safetensors", "--quiet").code == 0
    assert checkpoint.load_metadata(files / "hit")["share"] == "0.1"


def test_a_defence_without_guards_goes_into_a_folder(run, files, folder, common):
    done = run("defend", folder, *common, "--strength", "0.1", "-o", files / "out")
    assert done.code == 2
    assert "no place for the guards of a defended network; give --no-guard" in done.message
    assert not (files / "out").exists()
    assert run("defend", folder, *common, "--strength", "0.1", "--no-guard", "-o", files / "out").code == 0
    assert run("defend", WEIGHTS, *common, "--strength", "0.1", "--no-guard", "-o", files / "out.safetensors").code == 0
    assert run("diff", files / "out", files / "out.safetensors").code == 0
    assert sorted(contents(files / "out"))[1:] == ["model-1.safetensors", "model-2.safetensors", INDEX]


def test_tied_weights_are_written_once_and_weights_without_a_place_are_refused(run, files):
    weight = torch.randn(60, 60, generator=torch.Generator().manual_seed(0))
    head = {"2.weight": torch.randn(3, 60), "2.bias": torch.zeros(3)}
    model = write_shards(files / "model", {"a.safetensors": {"0.weight": weight}, "b.safetensors": head})
    base = write_shards(files / "base", {"a.safetensors": {"0.weight": weight}, "b.safetensors": head})
    options = ["--factory", "small_networks:tied", "--data", "inputs.npy", "--initial", base]
    done = run("recover", model, *options, "-o", files / "out")
    assert (files / "out" / "a.safetensors").exists(), done.err
    assert checkpoint.digest(checkpoint.load_weights(files / "out")) == checkpoint.digest({"0.weight": weight, **head})
    with pytest.raises(
        InputError, match=r"the network has others too: 1.bias; give -o a name that ends in .safetensors"
    ):
        save_folder({"0.weight": weight, "1.bias": torch.ones(3)}, model, files / "new", metadata={}, force=False)
    assert not (files / "new").exists()


REFUSED = [
    (["-o", "{}/model"], "is an input, which is never overwritten"),
    (["-o", "{}/model", "--force"], "is an input, which is never overwritten"),
    (["-o", "{}/model/model-1.safetensors", "--force"], "is an input, which is never overwritten"),
    (["-o", "{}/out", "--json", "{}/model/config.json"], "is an input, which is never overwritten"),
    (["-o", "{}/there"], "is there already; name another folder, or give --force"),
    (["-o", "{}/there", "--force"], "it holds precious.doc; remove that yourself"),
    (["-o", "{}/file", "--force"], "must be a place for a folder"),
    (["-o", "{}/absent/out"], "there is no folder"),
    (["-o", "{}/out", "--json", "{}/out/record.json"], "there is no folder"),
    (["-o", "{}/free", "--force", "--json", "{}/free/record.json"], "must lie outside of"),
    (["-o", "{}/out", "--initial", "{}/model/model.safetensors.index.json"], "is the file to purify itself"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_places_that_do_not_fit_are_refused_before_the_work(run, files, folder, common, arguments, message):
    (files / "there").mkdir()
    (files / "there" / "precious.doc").write_bytes(b"mine")
    (files / "free").mkdir()
    (files / "file").write_bytes(b"mine")
    before = contents(folder)
    initial = [] if "--initial" in arguments else ["--initial", "initial.safetensors"]
    done = run("recover", folder, *common, *initial, *(argument.replace("{}", str(files)) for argument in arguments))
    assert done.code == 2
    assert message in done.message
    assert contents(folder) == before
    assert sorted(path.name for path in files.iterdir()) == ["file", "free", "model", "there"]
    assert contents(files / "there") == {"precious.doc": b"mine"}


def test_a_folder_of_pickles_can_only_become_a_file(run, files, folder, common):
    for path in folder.glob("model*"):
        path.unlink()
    done = run("recover", folder, *common, "--initial-seed", "5", "-o", files / "out")
    assert done.code == 2
    assert "pytorch_model.bin is a file of torch.save, which is never written" in done.message
    assert run("recover", folder, *common, "--initial-seed", "5", "-o", files / "out.safetensors").code == 1


@pytest.mark.slow
def test_a_folder_is_replaced_with_force(run, files, folder, common):
    options = ["recover", folder, *common, "--initial-seed", "5", "-o", files / "out"]
    assert run(*options).code == 1
    first = contents(files / "out")
    shutil.copy(files / "out" / "config.json", files / "out" / "older.json")
    assert run(*options).code == 2
    assert run(*options, "--force").code == 1
    assert sorted(contents(files / "out")) == sorted(first)
    assert sorted(path.name for path in files.iterdir()) == ["model", "out"]


def test_a_folder_without_weights_says_what_it_holds(run, files):
    (files / "config.json").write_text("{}")
    done = run("diff", files, WEIGHTS)
    assert done.code == 2
    assert "expected a folder with weights: model.safetensors" in done.message
    assert "it holds config.json" in done.message
