"""Damaged and forged files by the thousand: each is read, or refused by an error of netpurify's own.

    python tools/fuzz.py --seconds 600 --seed 1     as long as that, over all readers
    python tools/fuzz.py --inputs 200 --only npy    as many, for one reader

Anything else is a finding: another exception, more than ten seconds, or far more memory than the file has bytes. A
file that led to a finding is kept in the folder ``--keep``, as is the last one if the process itself dies. The exit
code is 1 if there was a finding. The same seed gives the same files.
"""

import argparse
import contextlib
import hashlib
import io
import json
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from netpurify import checkpoint, data, network
from netpurify.errors import NetpurifyError

LONGEST = 10
"""Seconds for one file."""
NUMBERS = [
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
]
WORDS = [
    b"true", b"null", b"-1", b"1e999", b"Infinity", b"NaN", b"[]", b"{}", b'""', b"[[", b'{"a":', b"9" * 50, b"\\ud800",
    b"0.5", b"True", b"()", b"(", b")", b"}", b"R", b"h\0", b"q\0", b"\x85", b"\x86", b"\x87", b"t", b"Q", b"b", b"s",
    b"u", b"a", b"e", b"0", b"]", b"cposix\nsystem\n", b"c_codecs\nencode\n", b"ccollections\nCounter\n",
    b"ctorch\nSize\n",
]  # fmt: skip
SHARDS = {
    "model-1.safetensors": {"a.weight": torch.ones(2, 3), "a.bias": torch.zeros(2)},
    "model-2.safetensors": {"b.weight": torch.ones(3, dtype=torch.bfloat16)},
}


class HangError(BaseException):
    """It takes too long; not an ``Exception``, which a reader could take for a damaged file."""


@dataclass(frozen=True)
class Form:
    """A kind of file.

    Attributes:
        name: What to call it.
        samples: Intact files.
        read: Reads a file and looks at all that is in it.
        inner: A part of the file, such as a header, and how to put another in its place so that lengths and check sums
            fit again; ``None`` if there is none.
        memory: Bytes that may be taken.
    """

    name: str
    samples: list[bytes]
    read: Callable[[Path], Any]
    inner: tuple[Callable[[bytes], bytes], Callable[[bytes, bytes], bytes]] | None = None
    memory: int = 256 << 20


def mutated(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """The content with one to four changes: flips, cuts, splices, blocks repeated or removed, numbers and words."""
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        start, stop = sorted(chance.randrange(len(content) + 1) for _ in range(2))
        stop = min(stop, start + chance.choice([1, 4, 16, 64, 1 << 20]))
        number = chance.choice(NUMBERS)
        width = chance.choice([1, 2, 4, 8])
        order = chance.choice(["little", "big"])
        change = chance.randrange(8)
        if change == 0:
            middle = bytes(byte ^ (1 << chance.randrange(8)) for byte in content[start : start + 1])
            content = content[:start] + middle + content[start + 1 :]
        elif change == 1:
            content = content[:start]
        elif change == 2:
            at = chance.randrange(len(other) + 1)
            content = content[:start] + other[at : at + stop - start] + content[stop:]
        elif change == 3:
            content = content[:stop] + content[start:stop] * chance.choice([1, 2, 9, 200]) + content[stop:]
        elif change == 4:
            content = content[:start] + content[stop:]
        elif change == 5:
            value = (number & ((1 << 8 * width) - 1)).to_bytes(width, order)  # type: ignore[reportArgumentType]
            content = content[:start] + value + content[start + width :]
        elif change == 6:
            content = content[:start] + chance.choice(WORDS) + content[stop if chance.random() < 0.5 else start :]
        else:
            content = content[:start] + chance.randbytes(min(stop - start, 64)) + content[stop:]
    return content[: 1 << 20]


def files(form: Form, chance: random.Random) -> Iterator[bytes]:
    """Changed files without end; half of them changed in the inner part alone, if there is one."""
    while True:
        sample, other = chance.choice(form.samples), chance.choice(form.samples)
        if form.inner and chance.random() < 0.5:
            take, put = form.inner
            yield put(sample, mutated(take(sample), take(other), chance))
        else:
            yield mutated(sample, other, chance)


def examine(form: Form, path: Path) -> tuple[str, str]:
    """``"read"``, ``"refused"`` or ``"finding"``, and what was found."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        form.read(path)
        outcome = "read", ""
    except NetpurifyError as error:
        outcome = (
            ("refused", "") if str(path.parent) in str(error) else ("finding", f"a message without a name: {error}")
        )
    except (Exception, HangError) as error:
        outcome = "finding", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return ("finding", f"{taken >> 20} MB of memory") if taken > form.memory else outcome


def look(content: Any) -> None:
    """Reads every number of the tensors, so that memory that is not there shows."""
    for value in content.values() if isinstance(content, dict) else [content]:
        if isinstance(value, Tensor):
            checkpoint.digest_tensor(value)


def look_at_weights(path: Path) -> None:
    """As weights, as anything, and the metadata; as a whole and tensor by tensor."""
    look(checkpoint.load_content(path))
    checkpoint.load_metadata(path)
    found = checkpoint.digest(checkpoint.load_weights(path))
    with checkpoint.open_weights(path) as weights:
        assert weights.digest() == found, "two readers, two contents"


def look_at_index(path: Path) -> None:
    """As the index of two shards, which are written beside it, and of a third that it must never reach."""
    folder = path.parent / "shards"
    if not folder.exists():
        folder.mkdir()
        for name, state in SHARDS.items():
            checkpoint.save_weights(state, folder / name)
        checkpoint.save_weights({"secret": torch.ones(1)}, path.parent / "secret.safetensors")
    (folder / "model.safetensors.index.json").write_bytes(path.read_bytes())
    found = checkpoint.load_weights(folder)
    assert "secret" not in found, "a file outside of the folder was read"
    with checkpoint.open_weights(folder) as weights:
        assert weights.digest() == checkpoint.digest(found), "two readers, two contents"


def look_at_inputs(path: Path) -> None:
    """As inputs."""
    look(data.load_inputs(path))


def look_at_images(path: Path) -> None:
    """As the one image of a folder."""
    look(data.load_inputs(path.parent, size=(8, 8)))


def look_at_proof(path: Path) -> None:
    """As a proof."""
    for proof in network.load_proof(path).proofs:
        _ = proof.columns.sum() + proof.dual.sum() + proof.coefficients.sum() + proof.units.sum()


def forms() -> list[Form]:
    """Every kind of file that netpurify reads from others."""
    generator = torch.Generator().manual_seed(0)
    state = {"a.weight": torch.randn(3, 4, generator=generator), "a.bias": torch.zeros(3), "n": torch.tensor(3)}
    state |= {"turned": state["a.weight"].t(), "wave": torch.tensor([1 + 2j]).conj(), "none": torch.empty(0, 3)}
    whole = {"epoch": 3, "model": state, "optimizer": {"state": {0: {"step": torch.ones(1)}}, "lr": [0.1, (1, None)]}}
    whole |= {"raw": b"\0\xff", "shape": torch.Size([2]), "dtype": torch.float16, "device": torch.device("cpu")}
    array = np.arange(24.0).reshape(4, 2, 3)
    return [
        Form("torch zip", [_saved(state), _saved(whole), _saved(state | {"u": torch.ones(2).to(torch.uint16)})],
             look_at_weights, (_pickle, _with_pickle)),
        Form("torch legacy", [_saved(state, legacy=True), _saved(whole, legacy=True)], look_at_weights),
        Form("safetensors", [_safetensors(state, {}), _safetensors({"x": torch.ones(2, 3)}, {"a": "b"})],
             look_at_weights, (_header, _with_header)),
        Form("index", [_index(), _index(indent=2), _index("../secret.safetensors")], look_at_index),
        Form("proof", [_safetensors(*_proof())], look_at_proof, (_header, _with_header)),
        Form("npy", [_npy(array), _npy(np.asfortranarray(array.astype(">i2")))],
             look_at_inputs, (_npy_text, _with_npy_text)),
        Form("npz", [_npz(np.savez, array), _npz(np.savez_compressed, array)], look_at_inputs),
        Form("images", [_image(name) for name in ("PNG", "JPEG", "BMP", "GIF", "TIFF", "PPM", "WEBP")], look_at_images,
             (lambda content: content, lambda _, content: _with_check_sums(content)), memory=2 << 30),
    ]  # fmt: skip


def _saved(content: object, *, legacy: bool = False) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=not legacy)
    return stream.getvalue()


def _pickle(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("archive/data.pkl")


def _with_pickle(content: bytes, pickled: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(stream, "w") as made:
        for name in archive.namelist():
            undated = zipfile.ZipInfo(name)  # given a name alone, zipfile writes the time of day into the file
            made.writestr(undated, pickled if name == "archive/data.pkl" else archive.read(name))
    return stream.getvalue()


def _safetensors(state: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    plain = {name: value for name, value in state.items() if not value.is_complex()}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save_weights(plain, Path(folder) / "some", metadata=metadata)
        return (Path(folder) / "some").read_bytes()


def _index(secret: str | None = None, indent: int | None = None) -> bytes:
    places = {name: file for file, state in SHARDS.items() for name in state}
    more = {} if secret is None else {"beside": {"secret": secret}}
    return json.dumps({"metadata": {"total_size": 38}, "weight_map": places} | more, indent=indent).encode()


def _header(content: bytes) -> bytes:
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


def _with_header(content: bytes, header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + content[8 + len(_header(content)) :]


def _proof() -> tuple[dict[str, Tensor], dict[str, str]]:
    wide = torch.float64
    parts = {"columns": torch.ones(5, 2, dtype=wide), "units": torch.arange(3)}
    parts |= {"coefficients": torch.ones(2, 3, dtype=wide), "dual": torch.zeros(5, 3, dtype=wide)}
    content = {
        "version": 1, "policy": "recover", "decays": {"0": 1.0}, "noise_floor": None,
        "digests": {"contaminated": "a", "initial": None, "purified": "b", "data": "c"},
        "blocks": [{"layer": "0", "group": 0, "groups": 1, "columns": 0}],
    }  # fmt: skip
    return {f"0.{name}": part for name, part in parts.items()}, {"netpurify.proof": json.dumps(content)}


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _npy_text(content: bytes) -> bytes:
    return content[10 : 10 + int.from_bytes(content[8:10], "little")]


def _with_npy_text(content: bytes, text: bytes) -> bytes:
    text = text[: 0xFFFF - 1]
    return content[:8] + len(text).to_bytes(2, "little") + text + content[10 + len(_npy_text(content)) :]


def _npz(save: Callable[..., Any], array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    save(stream, inputs=array, labels=np.arange(4))
    return stream.getvalue()


def _image(name: str) -> bytes:
    stream = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    Image.fromarray(pixels).save(stream, name)
    return stream.getvalue()


def _with_check_sums(content: bytes) -> bytes:
    """A PNG whose chunks have the right check sums; anything else as it is."""
    at, parts = 8, [content[:8]]
    while content.startswith(b"\x89PNG") and at + 12 <= len(content):
        [length] = struct.unpack_from(">L", content, at)
        kind_and_content = content[at + 4 : at + 8 + length]
        parts += [content[at : at + 4], kind_and_content, zlib.crc32(kind_and_content).to_bytes(4, "big")]
        at += 12 + length
    return b"".join(parts) if len(parts) > 1 else content


def run(form: Form, *, seed: int, inputs: int | None, seconds: float | None, keep: Path) -> Counter[str]:
    """Tries files until there were ``inputs``, or ``seconds`` have passed; prints findings."""
    # A text and not a tuple: its hash would differ from process to process.
    made = files(form, random.Random(f"{seed} {form.name}"))
    folder = keep / form.name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "last.png"
    counts: Counter[str] = Counter()
    end = time.monotonic() + (seconds or float("inf"))
    while counts.total() < (inputs or float("inf")) and time.monotonic() < end:
        content = next(made)
        path.write_bytes(content)
        outcome, found = examine(form, path)
        counts[outcome] += 1
        if outcome == "finding":
            kept = keep / f"{form.name.replace(' ', '-')}-{hashlib.sha256(content).hexdigest()[:12]}"
            kept.write_bytes(content)
            print(f"finding in {form.name}: {found[:300]!r}; kept as {kept}", flush=True)
    path.unlink(missing_ok=True)
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Runs every reader, prints a line for each, and says whether anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="in all, over the readers")
    parser.add_argument("--inputs", type=int, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the reader of that name")
    parser.add_argument("--keep", type=Path, help="folder for files that led to a finding; a temporary one by default")
    options = parser.parse_args(arguments)
    if options.seconds is None and options.inputs is None:
        parser.error("give --seconds or --inputs")
    chosen = [form for form in forms() if options.only in (None, form.name)]
    keep = options.keep or Path(tempfile.mkdtemp(prefix="netpurify-fuzz-"))
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")  # Pillow warns of much that is odd in a file
    findings = 0
    for form in chosen:
        share = None if options.seconds is None else options.seconds / len(chosen)
        started = time.monotonic()
        with contextlib.redirect_stderr(io.StringIO()):
            counts = run(form, seed=options.seed, inputs=options.inputs, seconds=share, keep=keep)
        findings += counts["finding"]
        print(f"{form.name}: {counts.total()} inputs in {time.monotonic() - started:.0f} s, {counts['read']} read, "
              f"{counts['refused']} refused, {counts['finding']} findings", flush=True)  # fmt: skip
    return 1 if findings else 0


def _stop(*_: Any) -> None:
    raise HangError(f"still at work after {LONGEST} s")


if __name__ == "__main__":
    sys.exit(main())
