"""Work for engines to do or to fail at; in a module, so that workers can import it."""

import os
import sys
from pathlib import Path

import torch

WORKER_PATH = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
"""The environment with which processes of their own find this module and the package."""


def square(number: int) -> tuple[int, int]:
    return number**2, os.getpid()


def threads(_: int) -> tuple[int, int]:
    return torch.get_num_threads(), os.getpid()


def fussy(number: int) -> int:
    if number == 3:
        raise LookupError("not three")
    return number


def fatal(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), 9)
    return number


def fatal_once(flag: str) -> str:
    """Kills its worker, unless that has been done before."""
    if not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), 9)
    return flag
