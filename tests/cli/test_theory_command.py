import json
import os
import subprocess
import sys

import numpy as np
import pytest

SMALL = ["theory", "--n", "3", "--m", "2", "--k", "40", "--p", "60", "--eps", "0.1"]


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "netpurify", *arguments], capture_output=True, text=True, check=False)


def test_table_has_every_part_and_one_verdict_per_row():
    done = run(*SMALL, "--regime", "sequential")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
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
        "(15)",
        "(16)",
        "(17)",
        "limit",
    ):
        assert part in parts
    assert any("vacuous" in line for line in lines)
    assert any("holds" in line for line in lines)


def test_json_is_the_same_for_the_same_seed_and_another_for_another():
    first, again, other = (json.loads(run(*SMALL, "--json", "--seed", seed).stdout) for seed in ("4", "4", "5"))
    assert first == again != other
    assert first["schema"] == 1
    assert first["setting"]["share"] == 0.1
    assert {"part", "quantity", "relation", "bound", "measured", "verdict", "note"} == set(first["rows"][0])


def test_given_inputs_are_used(tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.random.default_rng(0).standard_normal((4, 80)))
    record = json.loads(run(*SMALL, "--json", "--inputs", str(path)).stdout)
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
        (["--inputs", "absent.npy"], "--inputs must be a .npy file"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_ends_with_code_2_and_a_message_without_a_traceback(arguments, message):
    done = run(*SMALL, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_inputs_that_patches_do_not_cover(tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.zeros((4, 81)))
    done = run(*SMALL, "--inputs", str(path))
    assert done.returncode == 2
    assert "[n, m k] = [n, 80]" in done.stderr


def test_an_empty_file_is_bad_input(tmp_path):
    path = tmp_path / "inputs.npy"
    path.touch()
    done = run(*SMALL, "--inputs", str(path))
    assert done.returncode == 2
    assert "--inputs must be a .npy file" in done.stderr


def test_json_has_no_words_that_json_does_not_know(tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, 0.01 * np.random.default_rng(0).standard_normal((3, 80)))
    done = run(*SMALL, "--json", "--inputs", str(path), "--gamma", "24", "--steps", "5")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout, parse_constant=lambda word: pytest.fail(word))


def test_a_terminal_that_knows_few_signs_gets_the_table_all_the_same():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "netpurify", *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_pickled_inputs_are_refused(tmp_path):
    path = tmp_path / "inputs.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    done = run(*SMALL, "--inputs", str(path))
    assert done.returncode == 2
    assert "--inputs must be a .npy file of numbers" in done.stderr


def test_inputs_that_claim_more_than_the_file_holds_are_bad_input(tmp_path):
    path = tmp_path / "inputs.npy"
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (312500000000, 80), }\n"  # 200 TB
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    done = run(*SMALL, "--inputs", str(path))
    assert done.returncode == 2, done.stderr
    assert "--inputs must be a .npy file" in done.stderr
    assert "200000000000000 bytes; got 0" in done.stderr.replace("\n", " ")
