"""Lines of plain text as token ids, by the tokenizer that comes with a network. Its own code is never run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from netpurify.checkpoint import open_regular, read_settings
from netpurify.errors import DataError, InputError

LENGTH = 128
"""Tokens of a line that are kept, where the user says nothing and the network takes as many."""
_LARGEST_TEXT = 1 << 28
_LARGEST_TOKENIZER = 1 << 28
_POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
"""Settings of networks that say how many tokens they take."""


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """What a network wants of its tokens.

    Attributes:
        longest: How many tokens it takes; ``None`` if nothing says so.
        padding: Id of the token that fills short lines up.
    """

    longest: int | None
    padding: int


def load_tokens(
    path: str | Path,
    tokenizer: str | Path,
    *,
    length: int | None = None,
    limit: int | None = None,
    batch: int | None = None,
) -> dict[str, Tensor] | list[dict[str, Tensor]]:
    """Network inputs from a plain text file in UTF-8: each line that is not blank is one input.

    Args:
        path: The text.
        tokenizer: ``tokenizer.json`` of the tokenizers library, or a folder of a network that has one. ``config.json``
            and ``tokenizer_config.json`` beside it say how many tokens the network takes and which token fills up.
        length: Tokens at which a line is cut; 128 by default, or as many as the network takes if these are fewer.
        limit: Only the first so many lines.
        batch: ``None`` for all lines together, filled up on the right to the longest. A number for batches of at most
            so many lines of equal length, the shortest lines first: there is nothing to fill up, so that layers see no
            inputs that training did not count.

    Returns:
        ``input_ids`` and ``attention_mask``, int64, [lines, tokens]; or a list of such batches.

    Raises:
        InputError: ``length`` is more than the network takes, or leaves no room for text.
        DataError: A file is not there or damaged, there are no lines, or the tokenizers library is not installed.
    """
    made = _tokenizer(Path(tokenizer))
    settings = _settings(Path(tokenizer), made)
    rows = _encode(made, _lines(Path(path), limit), _length(length, settings.longest), Path(path))
    if batch is None:
        return _padded(rows, settings.padding)
    together: dict[int, list[list[int]]] = {}
    for row in sorted(rows, key=len):
        together.setdefault(len(row), []).append(row)
    return [
        _padded(alike[start : start + batch], settings.padding)
        for alike in together.values()
        for start in range(0, len(alike), batch)
    ]


def _lines(path: Path, limit: int | None) -> list[str]:
    try:
        with open_regular(path) as stream:
            content = stream.read(_LARGEST_TEXT + 1)
    except OSError as problem:
        raise DataError(f"{path}: expected a text file that can be read; {problem.strerror}") from problem
    if len(content) > _LARGEST_TEXT:
        raise DataError(
            f"{path}: expected at most {_LARGEST_TEXT} bytes of text; got more; a few hundred lines will do"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DataError(
            f"{path}: expected plain text in UTF-8; byte {problem.start} is not; save the text in UTF-8"
        ) from problem
    # Not splitlines, which also cuts at separators within a line.
    lines = [line.rstrip("\r") for line in text.split("\n")]
    found = [line for line in lines if line.strip()][:limit]
    if not found:
        raise DataError(f"{path}: expected one input in each line; got no line with text; write one input a line")
    return found


def _tokenizer(path: Path) -> Any:
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        from tokenizers import Tokenizer
    except ImportError as problem:
        raise DataError(
            "text becomes tokens by the tokenizers library, which is not installed; "
            "pip install 'netpurify[hf]', or save the token ids as a .npz file"
        ) from problem
    try:
        with open_regular(file) as stream:
            content = stream.read(_LARGEST_TOKENIZER)
    except OSError as problem:
        raise DataError(
            f"{file}: expected a tokenizer that can be read; {problem.strerror}; give a tokenizer.json, which "
            "save_pretrained of a fast tokenizer writes"
        ) from problem
    try:
        made = Tokenizer.from_buffer(content)
        made.no_padding()
    except Exception as problem:  # the library raises plain exceptions with any text
        raise DataError(f"{file}: the tokenizer is damaged or foreign ({_first(problem)}); get it again") from problem
    return made


def _settings(path: Path, made: Any) -> TokenSettings:
    folder = path if path.is_dir() else path.parent
    config, about = (_optional(folder / name) for name in ("config.json", "tokenizer_config.json"))
    body = config.get("text_config")
    config = {**body, **config} if isinstance(body, Mapping) else config
    counts = [about.get("model_max_length"), *(config.get(name) for name in _POSITIONS)]
    known = [count for count in counts if type(count) is int and 0 < count < 1 << 24]
    return TokenSettings(min(known, default=None), _padding(config, about, made))


def _padding(config: Mapping[str, Any], about: Mapping[str, Any], made: Any) -> int:
    token = about.get("pad_token")
    token = token.get("content") if isinstance(token, Mapping) else token
    named = made.token_to_id(token) if isinstance(token, str) else None
    ends = config.get("eos_token_id")
    ends = ends[0] if isinstance(ends, list) and ends else ends
    # Networks such as GPT-2 have no such token; the mask says which tokens count, so any id will do.
    return next((one for one in (named, config.get("pad_token_id"), ends) if type(one) is int and one >= 0), 0)


def _optional(path: Path) -> dict[str, Any]:
    return read_settings(path) if path.is_file() else {}


def _length(length: int | None, longest: int | None) -> int:
    if length is None:
        return min(LENGTH, longest or LENGTH)
    if type(length) is not int or length < 1 or (longest is not None and length > longest):
        raise InputError(
            f"length must be a whole number of tokens from 1 to {longest or 'what the network takes'}; got {length!r}"
        )
    return length


def _encode(made: Any, lines: Sequence[str], length: int, path: Path) -> list[list[int]]:
    marks = made.num_special_tokens_to_add(False)
    if length <= marks:
        raise InputError(
            f"length must be above {marks}, since the tokenizer adds so many marks to a line; got {length}"
        )
    try:
        made.enable_truncation(length)
        rows = [made.encode(line).ids for line in lines]
    except Exception as problem:  # as above
        raise DataError(
            f"{path}: the tokenizer must take every line, cut at {length} tokens; it says {_first(problem)}; give "
            "another text or length"
        ) from problem
    rows = [row[:length] for row in rows if row]
    if not rows:
        raise DataError(f"{path}: expected text that the tokenizer knows; no line has a token; give its own language")
    return rows


def _padded(rows: Sequence[list[int]], padding: int) -> dict[str, Tensor]:
    longest = max(map(len, rows))
    ids = [row + [padding] * (longest - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def _first(problem: Exception) -> str:
    return str(problem).split("\n", maxsplit=1)[0][:200]
