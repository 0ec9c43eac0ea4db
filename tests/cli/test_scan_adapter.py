"""netpurify scan with an adapter, with changes of low rank, and with a network from config.json."""

import json
import sys
from pathlib import Path

import jsonschema
import pytest
import torch
from safetensors.torch import load_file, save_file

import netpurify
from netpurify import checkpoint, report
from netpurify.report import schema
from tests.report.page_reader import Reader

CONFIG = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none", "init_lora_weights": True}


def drawn(*shape, seed):
    return 0.1 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def merged(tmp_path, monkeypatch):
    """A base, an adapter as PEFT writes it, and the weights with the adapter merged by torch in float32."""
    monkeypatch.chdir(tmp_path)
    base = {
        "first.weight": drawn(120, 96, seed=1),
        "first.bias": drawn(120, seed=2),
        "last.weight": drawn(5, 120, seed=3),
    }
    down, up = drawn(4, 96, seed=4), drawn(120, 4, seed=5)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(CONFIG))
    names = {"first.lora_A.weight": down, "first.lora_B.weight": up}
    save_file({f"base_model.model.{name}": value for name, value in names.items()},
              tmp_path / "adapter" / "adapter_model.safetensors")  # fmt: skip
    save_file(base, "base.safetensors")
    weights = base | {"first.weight": base["first.weight"] + 2.0 * (up @ down)}
    save_file(weights, "merged.safetensors")
    return weights


def tampered(weights):
    """One entry of the adapted tensor moved by as little as the adapter moves others, one of the bias by a little."""
    changed = {name: value.clone() for name, value in weights.items()}
    changed["first.weight"][7, 11] += 0.02
    changed["first.bias"][3] += 1e-4
    save_file(changed, "tampered.safetensors")
    return changed


ASKED = ("--against", "base.safetensors", "--adapter", "adapter")


@pytest.mark.usefixtures("merged")
def test_merged_weights_are_known_entry_by_entry(run):
    done = run("scan", "merged.safetensors", *ASKED, "--strict")
    assert done.code == 0, done.out + done.err
    assert (
        "The adapter changes 1 tensor; of 12,240 entries compared with base and adapter, all of them are what"
        in done.out
    )
    assert "examined 100.0 %, compared only 0 %, unknown 0 %" in done.out
    assert run("scan", "merged.safetensors", "--against", "base.safetensors", "--strict", "--quiet").code == 1


def test_what_is_not_base_and_adapter_is_named_everywhere(run, merged):
    changed = tampered(merged)
    logs = ("--json", "scan.json", "--sarif", "scan.sarif", "--report", "scan.html")
    done = run("scan", "tampered.safetensors", *ASKED, *logs)
    assert done.code == 1
    assert "first.weight[7, 11]" in done.out
    assert "first.bias[3]" in done.out
    assert "2 entries not base and adapter in 2 tensors (first.weight, first.bias)" in done.out
    record = json.loads(Path("scan.json").read_text())
    jsonschema.validate(record, schema("scan"))
    found = {one["name"]: one for one in record["merge"]["differences"]}
    assert {name: one["index"] for name, one in found.items()} == {"first.weight": [7 * 96 + 11], "first.bias": [3]}
    assert found["first.weight"]["was"] == [changed["first.weight"][7, 11].item()]
    assert found["first.weight"]["expected"] == pytest.approx([merged["first.weight"][7, 11].item()], abs=1e-7)
    assert (record["merge"]["agrees"], record["merge"]["adapted"]) == (False, ["first.weight"])
    results = json.loads(Path("scan.sarif").read_text())["runs"][0]["results"]
    assert {(it["ruleId"], it["level"]) for it in results} == {("not-base-and-adapter", "error")}
    assert any("first.weight: 1 of 11,520 weights are not what base and adapter make" in it["message"]["text"]
               and "at index 7, 11" in it["message"]["text"] for it in results)  # fmt: skip
    assert "not base and adapter" in Path("scan.html").read_text()


def test_an_impossible_entry_is_told_once(merged):
    changed = {name: value.clone() for name, value in merged.items()}
    changed["first.weight"][0, 0] = float("nan")
    found = report.Detection(netpurify.scan(changed, load_file("base.safetensors"), adapter="adapter")).findings
    assert [(it.kind.name, it.tensor.name, it.count) for it in found] == [("NOT_MERGED", "first.weight", 1)]


@pytest.mark.usefixtures("merged")
def test_an_adapter_of_another_base_is_bad_input(run):
    checkpoint.save_weights({"first.weight": drawn(50, 96, seed=1)}, "other.safetensors")
    done = run("scan", "merged.safetensors", "--against", "other.safetensors", "--adapter", "adapter")
    assert done.code == 2
    assert "is it an adapter of another base?" in done.message
    assert run("scan", "merged.safetensors", "--against", "base.safetensors", "--adapter", "missing").code == 2


def test_low_rank_names_the_rank_and_what_does_not_agree(run, merged):
    changed = tampered(merged)
    plain = run("scan", "tampered.safetensors", "--against", "base.safetensors", "--sarif", "-")
    assert all(it["ruleId"] != "off-low-rank" for it in json.loads(plain.out)["runs"][0]["results"])
    done = run("scan", "tampered.safetensors", "--against", "base.safetensors", "--low-rank", "--json", "low.json")
    assert done.code == 1
    assert "off the low rank (rank 4)" in done.out
    assert "The change of 1 trained tensor has a low rank (first.weight: 4)" in done.out
    record = json.loads(Path("low.json").read_text())
    jsonschema.validate(record, schema("scan"))
    (one,) = record["low_rank"]
    assert (one["name"], one["rank"], one["index"]) == ("first.weight", 4, [7 * 96 + 11])
    assert one["was"] == [changed["first.weight"][7, 11].item()]
    assert one["expected"] == pytest.approx([merged["first.weight"][7, 11].item()], abs=1e-6)
    log = json.loads(
        run("scan", "tampered.safetensors", "--against", "base.safetensors", "--low-rank", "--sarif", "-").out
    )
    (alert,) = [it for it in log["runs"][0]["results"] if it["ruleId"] == "off-low-rank"]
    assert alert["level"] == "warning"
    assert "(rank 4)" in alert["message"]["text"]


@pytest.mark.usefixtures("merged")
def test_a_low_rank_on_which_all_agree_is_no_finding(run):
    done = run("scan", "merged.safetensors", "--against", "base.safetensors", "--low-rank")
    assert done.code == 0
    assert "has a low rank (first.weight: 4)" in done.out


def test_a_scan_shows_itself(merged):
    scan = netpurify.scan(tampered(merged), load_file("base.safetensors"), adapter="adapter")
    assert repr(scan).startswith("Scan(tensors=3, found=")
    text = str(scan)
    assert "first.weight: 1 not base and adapter of 11,520; largest change 0.02 at index 7, 11" in text
    assert len(text.splitlines()) < 25
    html = scan._repr_html_()
    assert "first.bias" in html
    assert "<script" not in html


def test_of_many_differences_the_largest_are_kept_and_all_are_counted(merged):
    """As with another adapter than the one that was merged."""
    base = load_file("base.safetensors")
    changed = merged | {"first.weight": merged["first.weight"] + drawn(120, 96, seed=9)}
    scan = netpurify.scan(changed, base, adapter="adapter")
    (one,) = scan.merge.differences
    assert (one.count, one.index.size, one.left_out, scan.merge.differing) == (11_520, 10_000, 1_520, 11_520)
    sizes = (changed["first.weight"] - merged["first.weight"]).abs().reshape(-1)
    assert set(one.index.tolist()) == set(sizes.argsort(descending=True)[:10_000].tolist())
    assert "11,520 entries not base and adapter in 1 tensor (first.weight)" in report.summarise(scan).headline


def test_every_tensor_on_the_page_has_its_count_of_findings(merged):
    page = Reader(report.page(netpurify.scan(tampered(merged), load_file("base.safetensors"), adapter="adapter"))).words
    row = page.split("first.weight\ncompared with what base and adapter make")[1]
    assert row.split("\n")[1:6] == ["trained", "120 by 96", "float32", "11,520", "1"]


@pytest.mark.usefixtures("merged")
def test_options_of_the_network_need_clean_inputs(run):
    for option, value in (("--config", "x.json"), ("--factory", "a:b"), ("--tokenizer", "t.json"), ("--length", "4")):
        done = run("scan", "merged.safetensors", "--against", "base.safetensors", option, value)
        assert done.code == 2
        assert f"{option} must come with clean inputs" in done.message
    torch.save(torch.zeros(2, 96), "inputs.pt")
    done = run("scan", "merged.safetensors", "--against", "base.safetensors", "--data", "inputs.pt")
    assert done.code == 2
    assert "give --factory MODULE:FUNCTION, or --config FILE" in done.message


@pytest.mark.usefixtures("merged")
def test_without_clean_inputs_transformers_is_not_even_loaded(run, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    for name in [name for name in sys.modules if name.split(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    assert run("scan", "merged.safetensors", "--against", "base.safetensors").code == 0
    assert "transformers" not in sys.modules


def test_what_an_adapter_explains_is_not_called_trained(merged):
    scan = netpurify.scan(merged, load_file("base.safetensors"), adapter="adapter")
    summary = report.summarise(scan)
    assert not any("only what no training could have done" in text for text in summary.texts)
    assert "What the adapter itself does is not judged." in summary.basis
    assert "compared with what base and adapter make, entry by entry" in report.page(scan)
    assert "only what no training could have done" not in report.page(scan)
    assert "tensor-compared-only" not in str(
        report.sarif(report.Detection(scan, strict=True), file="m")["runs"][0]["results"]
    )
