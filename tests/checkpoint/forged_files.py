"""Files of torch.save that are not as they should be: exploits, lies about sizes, archives packed anew."""

import io
import os
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from netpurify.checkpoint import load_weights

both_formats = pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])


class Forged:
    """Pickles as a call of ``function``; loading it for real would make that call."""

    def __init__(self, function: Callable, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable, tuple]:
        return self.call


def exploit(marker: Path) -> Forged:
    """Makes a folder called ``marker`` when it is loaded."""
    return Forged(os.mkdir, str(marker))


def claim(*, size: tuple, stride: tuple, offset: Any = 0, items: int = 4) -> Forged:
    """A tensor of float32 with a storage of ``items`` that says this about itself."""
    storage = torch.storage.TypedStorage(
        wrap_storage=torch.ones(items).untyped_storage(), dtype=torch.float32, _internal=True
    )
    return Forged(torch._utils._rebuild_tensor_v2, storage, offset, size, stride, False, OrderedDict())


def saved(content: object, *, legacy: bool = False, protocol: int = 2) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    return stream.getvalue()


GENERATOR = torch.Generator().manual_seed(0)
WEIGHTS = {"a.weight": torch.randn(3, 4, generator=GENERATOR), "a.bias": torch.randn(3, generator=GENERATOR)}
PLAIN = saved(WEIGHTS)
OLD = saved(WEIGHTS, legacy=True)


def load(folder: Path, content: bytes) -> dict[str, torch.Tensor]:
    (folder / "some.pt").write_bytes(content)
    return load_weights(folder / "some.pt")


def repacked(
    content: bytes, changes: dict[str, bytes | None], *, compression: int = zipfile.ZIP_STORED, twin: str | None = None
) -> bytes:
    """The archive with entries changed, added or (``None``) left out, and ``twin`` written twice."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, part in {**entries, **changes}.items():
            if part is not None:
                archive.writestr(f"archive/{name}", part)
        if twin:
            archive.writestr(f"archive/{twin}", entries[twin])
    return stream.getvalue()


def inflated(content: bytes, name: str, size: int) -> bytes:
    """The archive whose directory gives the entry ``name`` another size."""
    whole = bytearray(repacked(content, {}))
    entry = whole.rindex(f"archive/{name}".encode()) - 46
    assert whole[entry : entry + 4] == b"PK\x01\x02"
    whole[entry + 20 : entry + 28] = size.to_bytes(4, "little") * 2
    return bytes(whole)


def text(content: str) -> bytes:
    """The step of a pickle that pushes a text."""
    encoded = content.encode()
    return b"X" + len(encoded).to_bytes(4, "little") + encoded


def with_pickle(steps: bytes) -> bytes:
    """The archive of ``WEIGHTS`` with another pickle."""
    return repacked(PLAIN, {"data.pkl": b"\x80\x02" + steps + b"."})
