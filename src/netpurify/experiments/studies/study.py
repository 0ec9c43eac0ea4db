"""What a study is: experiments about this library itself, and the page that is made from their tables."""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from netpurify.atomic import write_atomically
from netpurify.errors import InputError
from netpurify.experiments.runner import core_seconds
from netpurify.findings import Experiment, Mode, TableRow, read_table

Tables = Mapping[str, list[TableRow]]
"""The rows of finished trials, by the name of their experiment."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """How the tables of a page were made.

    Attributes:
        commands: The commands, one on each line.
        core_seconds: Seconds of one core that all trials took together.
    """

    commands: str
    core_seconds: float

    @property
    def core_time(self) -> str:
        """The time of one core in words."""
        minutes = self.core_seconds / 60.0
        return f"{minutes:.0f} minutes" if minutes <= 60.0 else f"{minutes / 60.0:.1f} hours"


def always(*experiments: Experiment) -> Callable[[Path], tuple[Experiment, ...]]:
    """The experiments of a study whose trials share nothing, for ``Study.experiments``."""
    return lambda _: experiments


def no_data_sets(_: Mode) -> tuple[str, ...]:
    """For studies that need nothing but what is bundled."""
    return ()


def no_pictures(_: Tables) -> Mapping[str, str]:
    """For pages without drawings."""
    return {}


@dataclass(frozen=True, slots=True)
class Study:
    """Experiments that answer one question about this library, and their page.

    Attributes:
        name: Name on the command line.
        title: The question, in one line.
        document: File of the published page, in ``docs``.
        experiments: Gives the experiments, in the order in which they run; the argument is a folder in which trials
            may keep what they share, such as trained networks.
        page: Makes the page, as Markdown, from the tables and from how they were made.
        pictures: Makes the drawings of the page, as SVG, by their paths beside the page.
        data_sets: Gives the data sets that must have been fetched for a mode.
        libraries: Libraries that the study needs beyond those of the package; the extra ``studies`` brings them.
    """

    name: str
    title: str
    document: str
    experiments: Callable[[Path], tuple[Experiment, ...]]
    page: Callable[[Tables, RunFacts], str]
    pictures: Callable[[Tables], Mapping[str, str]] = no_pictures
    data_sets: Callable[[Mode], tuple[str, ...]] = no_data_sets
    libraries: tuple[str, ...] = ()


def require_libraries(study: Study) -> None:
    """Refuse a study whose libraries are not installed.

    Raises:
        InputError: One of them is missing.
    """
    missing = [name for name in study.libraries if find_spec(name) is None]
    if missing:
        raise InputError(
            f"the study {study.name!r} needs {' and '.join(study.libraries)}; {', '.join(missing)} is not installed; "
            "run pip install 'netpurify[studies]'"
        )


def write_page(study: Study, page: Path, *, tables: Path, mode: Mode) -> None:
    """Write the page of a study, its drawings and a compressed copy of each table beside it.

    Args:
        study: The study.
        page: File of the page; drawings go to ``figures`` and tables to ``results`` beside it.
        tables: Folder of the finished tables.
        mode: The mode in which the tables were made.

    Raises:
        InputError: A table is missing, or a library that draws is not installed.
    """
    require_libraries(study)
    rows: dict[str, list[TableRow]] = {}
    seconds = 0.0
    files: dict[str, bytes] = {}
    for experiment in study.experiments(tables):
        path = table_path(tables, experiment.name)
        finished = [row for row in read_table(path) if row["failure"] is None]
        rows[experiment.name] = finished
        seconds += core_seconds(experiment, finished, mode=mode)
        content = path.read_bytes()
        files[f"results/{experiment.name}.csv.gz"] = (
            content if path.suffix == ".gz" else gzip.compress(content, mtime=0)
        )
    text = study.page(rows, RunFacts(commands_of(study, mode), seconds))
    files |= {name: drawing.encode() for name, drawing in study.pictures(rows).items()}
    files[page.name] = text.encode()
    for name, content in files.items():
        path = page.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(content)


def commands_of(study: Study, mode: Mode) -> str:
    """The commands that make the page of a study, one on each line."""
    option = "" if mode == "default" else f" --{mode}"
    fetch = [f"netpurify data fetch {name}" for name in study.data_sets(mode)]
    return "\n".join([*fetch, f"netpurify study {study.name}{option} --markdown docs/{study.document}"])


def failed_trials(experiment: Experiment, tables: Path) -> list[TableRow]:
    """The rows of a table that stand for failed trials, with the reason in the column ``failure``."""
    return [row for row in read_table(table_path(tables, experiment.name)) if row["failure"] is not None]


def table_path(folder: Path, name: str) -> Path:
    """The file of a table, compressed or not.

    Raises:
        InputError: The folder has neither.
    """
    for path in _table_files(folder, name):
        if path.is_file():
            return path
    raise InputError(f"{folder} must hold {name}.csv or {name}.csv.gz; it has neither; run the experiment first")


def has_table(folder: Path, name: str) -> bool:
    """Whether the folder has the table, compressed or not."""
    return any(path.is_file() for path in _table_files(folder, name))


def _table_files(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.csv", folder / f"{name}.csv.gz"]
