"""A browser without a screen."""

import shutil
import subprocess
from pathlib import Path

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def browse(page: Path, *options: str) -> str:
    """Opens a page; gives what the browser prints."""
    return _run(page, *options).stdout


def logged(page: Path) -> list[str]:
    """Opens a page; gives the lines of its console."""
    done = _run(page, "--dump-dom", "--enable-logging=stderr", "--v=0")
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def _run(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={page.parent / 'profile'}",
    ]
    return subprocess.run(
        [BROWSER, *fixed, *options, page.as_uri()], check=True, capture_output=True, text=True, timeout=600
    )
