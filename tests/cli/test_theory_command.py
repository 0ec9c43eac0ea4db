import json
import os
import subprocess
import sys

import numpy as np
import pytest

SMALL = ["theory", "--n", "3", "--m", "2", "--k", "40", "--p", "60", "--eps", "0.1"]


@pytest.mark.slow
def test_table_has_every_part_and_one_verdict_per_row(run):
    done = run(*SMALL, "--regime", "sequential")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("n = 3, m = 2, k = 40, p = 60")
    parts = [line.split("  ")[0] for line in lines[2:]]
    for part in (
        "Theorem 1",
        "Theorem 3",
        "(8)",
        "(9)",
        "(10)",
        "(11)",
        "(12)",
        "(13)",
        "(14)",
        "(15)",
        "(16)",
        "(17)",
        "(18)",
        "assumption",
        "Lemma 2",
        "Lemma 4",
        "Lemma 5",
        "Lemma 8",
        "(15) corrected",
        "limit",
    ):
        assert part in parts
    assert any("vacuous" in line for line in lines)
    assert any("holds" in line for line in lines)


@pytest.mark.slow
def test_json_is_the_same_for_the_same_seed_and_another_for_another(run):
    elsewhere = [sys.executable, "-m", "netpurify", *SMALL, "--json", "--seed", "4"]
    first = json.loads(subprocess.run(elsewhere, capture_output=True, check=True).stdout)
    again, other = (json.loads(run(*SMALL, "--json", "--seed", seed).out) for seed in ("4", "5"))
    assert first == again != other
    assert first["schema"] == 1
    assert first["setting"]["share"] == 0.1
    assert {"part", "quantity", "relation", "bound", "measured", "verdict", "note"} == set(first["rows"][0])


@pytest.mark.slow
def test_inputs_that_are_not_gaussian_are_said_to_be(run, tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.random.default_rng(0).random((4, 80)))
    rows = json.loads(run(*SMALL, "--json", "--inputs", str(path)).out)["rows"]
    gaussian = next(row for row in rows if row["quantity"].startswith("inputs are N(0, I)"))
    assert gaussian["verdict"] == "does not hold"
    assert gaussian["note"].startswith("not Gaussian")
    assert any("promised for Gaussian inputs only" in row["note"] for row in rows if row["part"] == "(13)")


@pytest.mark.slow
def test_a_sweep_prints_a_table_and_json_that_can_fail(run):
    words = ["theory", "--sweep", "m", "--values", "1, 4,16", "--k", "60", "--p", "100", "--steps", "20"]
    done = run(*words)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith(
        "n = 5, k = 60, p = 100, gamma = 0.1 to 0.0078125 (at most 2/m^2), eps = 0.2, joint, 5 runs"
    )
    (printed,) = [line for line in lines if line.startswith("(15)  ")]
    (corrected,) = [line for line in lines if line.startswith("(15) corrected")]
    assert printed.rstrip().endswith("does not hold")
    assert corrected.rstrip().endswith("holds")
    record = json.loads(run(*words, "--json").out)
    assert record["schema_name"] == "sweep"
    assert record["values"] == [1, 4, 16]
    verdicts = {one["part"]: one["verdict"] for one in record["statements"]}
    assert (verdicts["(15)"], verdicts["(15) corrected"]) == ("does not hold", "holds")


@pytest.mark.slow
def test_errata_are_a_table_or_a_page(run, tmp_path):
    done = run("theory", "--errata")
    assert done.code == 0, done.err
    assert "Algorithm 1" in done.out
    path = tmp_path / "errata.md"
    done = run("theory", "--errata", "--markdown", str(path))
    assert done.out.startswith("42 errata")
    assert path.read_text().startswith("# Errata of the paper")


@pytest.mark.slow
def test_given_inputs_are_used(run, tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.random.default_rng(0).standard_normal((4, 80)))
    record = json.loads(run(*SMALL, "--json", "--inputs", str(path)).out)
    assert record["setting"]["n"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--eps", "1.5"], "--eps"),
        (["--n", "0"], "--n"),
        (["--n", "-1"], "--n"),
        (["--seed", "99999999999999999999999"], "--seed"),
        (["--m", "0"], "--m"),
        (["--regime", "both"], "regime must be"),
        (["--gamma", "1e300"], "lower gamma"),
        (["--gamma", "0"], "gamma must be a positive number"),
        (["--inputs", "absent.npy"], "absent.npy"),
        (["--nonsense"], "--nonsense"),
        (["--p", "1" + 12 * "0"], "k p is 40,000,000,000,000"),
        (["--n", "1" + 30 * "0"], "the largest array may have"),
        (["--n", "1000000", "--k", "1000000"], "n m k is 2,000,000,000,000"),
        (["--m", "1" + 30 * "0"], "the largest array may have"),
        (["--steps", "1" + 30 * "0"], "--steps"),
        (["--sweep", "eps"], "--sweep must be one of m, k, p, n"),
        (["--values", "1,2,3"], "--values are those of --sweep"),
        (["--sweep", "m", "--values", "1,x,3"], "--values must be whole numbers"),
        (["--sweep", "m", "--values", "1,2"], "at least three different numbers, from 1 on"),
        (["--sweep", "p", "--values", "1,2,3"], "at least three different numbers, from 2 on"),
        (["--sweep", "m", "--values", "1,2," + 12 * "9"], "the largest array may have"),
        (["--sweep", "m", "--values", "1,2," + 30 * "9"], "--values must be whole numbers"),
        (["--sweep", "m", "--errata"], "neither with --inputs nor with --errata"),
        (["--sweep", "m", "--regime", "sequential"], "a sweep trains jointly"),
        (["--markdown", "errata.md"], "give --errata too"),
        (["--errata", "--json"], "it has no JSON"),
        (["--errata", "--markdown", "/nowhere/errata.md"], "/nowhere"),
    ],
)
def test_bad_input_ends_with_code_2_and_a_message_without_a_traceback(run, arguments, message):
    done = run(*SMALL, *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_inputs_that_patches_do_not_cover(run, tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.zeros((4, 81)))
    done = run(*SMALL, "--inputs", str(path))
    assert done.code == 2
    assert "[n, m k] = [n, 80]" in done.err


def test_an_empty_file_is_bad_input(run, tmp_path):
    path = tmp_path / "inputs.npy"
    path.touch()
    done = run(*SMALL, "--inputs", str(path))
    assert done.code == 2
    assert "--inputs must be a .npy file" in done.err


@pytest.mark.slow
def test_json_has_no_words_that_json_does_not_know(run, tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, 0.01 * np.random.default_rng(0).standard_normal((3, 80)))
    done = run(*SMALL, "--json", "--inputs", str(path), "--gamma", "24", "--steps", "5")
    assert done.code == 0, done.err
    json.loads(done.out, parse_constant=lambda word: pytest.fail(word))


@pytest.mark.slow
def test_a_terminal_that_knows_few_signs_gets_the_table_all_the_same():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "netpurify", *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", ["(5000000000000, 5)", "(True, 80)", "(-1, 80)", "(1" + 40 * "0" + ", 80)"])
def test_a_header_that_lies_about_its_size_is_refused(run, tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path = tmp_path / "inputs.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(640))
    done = run(*SMALL, "--inputs", str(path))
    assert done.code == 2, done.err
    assert "--inputs must" in done.err


def test_pickled_inputs_are_refused(run, tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    done = run(*SMALL, "--inputs", str(path))
    assert done.code == 2
    assert "--inputs must be a .npy file of numbers" in done.err


def test_inputs_that_claim_more_than_the_file_holds_are_bad_input(run, tmp_path):
    path = tmp_path / "inputs.npy"
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (312500000000, 80), }\n"  # 200 TB
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    done = run(*SMALL, "--inputs", str(path))
    assert done.code == 2, done.err
    assert "--inputs must be a .npy file" in done.err
    assert "200000000000000 bytes; got 0" in done.err.replace("\n", " ")


def test_errata_refuse_sizes_that_would_be_ignored(run):
    done = run("theory", "--errata", "--k", "3", "--seed", "1")
    assert done.code == 2
    assert "leave out --k, --seed" in done.err
