"""Weights that are read tensor by tensor, so that models larger than memory can be looked at and compared."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from torch import Tensor

from netpurify.checkpoint.model_files import ModelFiles, find_files
from netpurify.checkpoint.shards import LoadedShard, SafetensorsShard, TensorEntry, open_shard
from netpurify.checkpoint.tensors import digest_tensor, join_digests
from netpurify.checkpoint.weights import shared_texts, without_prefixes
from netpurify.errors import CheckpointError, InputError


class WeightsFile:
    """Weights in a file, a folder or behind an index, of which only the headers have been read; see ``open_weights``.

    Attributes:
        files: The files that hold them.
        entries: Dtype, shape and file of every tensor, by name.
        metadata: The texts beside the weights; of several shards, those that all have alike.
        shards: The open files, by path.
    """

    def __init__(self, path: str | Path) -> None:
        """Opens all files; use ``open_weights`` in a ``with`` statement."""
        self.files: ModelFiles = find_files(path)
        self.shards: dict[Path, SafetensorsShard | LoadedShard] = {}
        with ExitStack() as stack:
            found: dict[str, TensorEntry] = {}
            for file in self.files.shards:
                self.shards[file] = open_shard(file, stack)
                inside = dict(self.shards[file].entries())
                self.files.confirm(file, inside)
                found |= inside
            if not found:
                raise CheckpointError(f"{path}: expected weights; the file holds no tensor; save model.state_dict()")
            self._close = stack.pop_all().close
        names = without_prefixes(list(found))
        self.entries: Mapping[str, TensorEntry] = dict(zip(names, found.values(), strict=True))
        self.metadata: Mapping[str, str] = shared_texts(shard.metadata for shard in self.shards.values())

    def read(self, name: str, part: slice | None = None) -> Tensor:
        """A tensor's values, read now into memory of their own.

        Args:
            name: One of ``entries``.
            part: Rows along the first axis, such as ``slice(0, 1000)``, of a tensor that is too large to be read at
                once; all of it by default.

        Raises:
            InputError: There is no such tensor, the part has a step or is one of a single number, or the file was
                closed.
            CheckpointError: A file was changed in place since it was opened, or cannot be read.
        """
        if not self.shards:
            raise InputError(
                f"{self.files.path} must be open to be read; it was closed; read within the with statement"
            )
        if name not in self.entries:
            raise InputError(f"{self.files.path} has no tensor {name!r}; it has {len(self.entries)}, listed in entries")
        entry = self.entries[name]
        rows = None if part is None else _rows(name, entry, part)
        return self.shards[entry.file].read(entry.written, rows)

    def digest(self) -> str:
        """What ``checkpoint.digest`` gives for these weights, from one tensor at a time."""
        return join_digests({name: digest_tensor(self.read(name)) for name in self.entries})

    @property
    def others(self) -> tuple[str, ...]:
        """Names of other files of the folder that may hold weights and were not read, such as ``pytorch_model.bin``."""
        return self.files.others

    def close(self) -> None:
        """Closes all files; nothing can be read any more."""
        self.shards = {}
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_weights(path: str | Path) -> WeightsFile:
    """Opens weights to be read tensor by tensor, in the memory of one tensor, whatever the size of the model.

        with open_weights("model") as weights, open_weights("base") as base:
            for name, entry in weights.entries.items():
                same = torch.equal(weights.read(name), base.read(name))

    Names and checks are those of ``load_weights``: before this returns, the headers of all files are read and held
    against the sizes of the files, and the prefixes ``module.`` and ``_orig_mod.`` are taken off. A file of
    ``torch.save`` has no such header: it is mapped as a whole, as ``load_weights`` does it, and ``read`` copies from
    there, so that its pages count as memory of this process.

    Files stay open. One that is *replaced* meanwhile is read on as it was; one that is *changed in place* is refused
    when its size or its time of change shows it, which a change within one tick of the file system's clock does not.

    Args:
        path: A file, a Hugging Face folder, or an index of shards.

    Raises:
        CheckpointError: As for ``load_weights``.
    """
    return WeightsFile(path)


def _rows(name: str, entry: TensorEntry, part: slice) -> slice:
    if not entry.shape or part.step not in (None, 1):
        raise InputError(
            f"{name}: a part must be rows of a tensor with at least one axis, such as slice(0, 1000), without a step; "
            f"got {part} for the shape {list(entry.shape)}; leave it out"
        )
    start, stop, _ = part.indices(entry.shape[0])
    return slice(start, max(start, stop))
