"""Standard output that is closed, full, or no longer read."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the shell is that of POSIX")


def shell(line):
    command = f'"{sys.executable}" -c "from netpurify.cli import main; main()"'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    script = f"set -o pipefail; {line.replace('netpurify', command, 1)}"
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, env=environment
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("netpurify --version >&-", 0, ""),
        ("netpurify --version >&- 2>&-", 0, ""),
        ("netpurify --help | head -1", 0, ""),
        ("netpurify --help | true", 0, ""),
        ("netpurify diff trained.safetensors contaminated.safetensors | true", 1, ""),
        ("netpurify --nonsense 2>&-", 2, ""),
        ("netpurify --nonsense 2>/dev/full", 2, ""),
        ("netpurify --version >/dev/full", 2, "standard output cannot be written (No space left on device)"),
        ("netpurify --help >/dev/full", 2, "standard output cannot be written (No space left on device)"),
        ("netpurify diff trained.safetensors trained.safetensors >/dev/full 2>&1", 2, ""),
    ],
)
@pytest.mark.usefixtures("files")
def test_no_reader_is_no_traceback(line, code, told):
    if "/dev/full" in line and not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("there is no /dev/full here")
    done = shell(line)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert bool(done.stderr) == bool(told)
