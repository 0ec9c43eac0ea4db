"""Inputs from a folder of images: sorted, scaled to [0, 1], and every image that cannot be used named."""

import io
import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from netpurify.data import load_inputs
from netpurify.data.inputs.available_memory import free_memory
from netpurify.errors import DataError

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (4, 6, 3), np.uint8)
GREY = RNG.integers(0, 256, (4, 6), np.uint8)


def encoded(pixels: np.ndarray, form: str = "PNG", *, mode: str | None = None) -> bytes:
    stream = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(stream, form)
    return stream.getvalue()


def put(folder: Path, **contents: bytes) -> Path:
    for name, content in contents.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def shades(folder: Path) -> list[int]:
    return (load_inputs(folder)[:, 0, 0, 0] * 255).round().int().tolist()


def plain(shade: int) -> bytes:
    return encoded(np.full((2, 2), shade, np.uint8))


def test_pixels_become_channels_between_nought_and_one(tmp_path):
    inputs = load_inputs(put(tmp_path, a_png=encoded(COLOUR)))
    assert (inputs.dtype, inputs.shape, inputs.is_contiguous()) == (torch.float32, (1, 3, 4, 6), True)
    assert np.array_equal(inputs[0].numpy(), COLOUR.transpose(2, 0, 1).astype(np.float32) / np.float32(255))
    inputs = load_inputs(put(tmp_path / "grey", a_png=encoded(GREY)))
    assert np.array_equal(inputs.numpy(), GREY[None, None].astype(np.float32) / np.float32(255))


def test_images_below_are_sorted_by_name_and_what_is_hidden_or_no_image_is_skipped(tmp_path):
    put(
        tmp_path,
        b_png=plain(2),
        a__z_png=plain(1),
        c__a_PNG=plain(3),
        c__d__e_bmp=encoded(np.full((2, 2), 4, np.uint8)),
    )
    put(tmp_path, _hidden_png=b"broken", _cache__a_png=b"broken", notes_txt=b"text", a__list_csv=b"1")
    assert shades(tmp_path) == [1, 2, 3, 4]
    assert load_inputs(tmp_path, limit=2).shape[0] == 2
    assert load_inputs(tmp_path, limit=9).shape[0] == 4


@pytest.mark.parametrize(("form", "suffix"), [("BMP", "bmp"), ("TIFF", "tif"), ("PPM", "ppm"), ("PNG", "jpg")])
def test_other_formats_are_told_by_their_content(tmp_path, form, suffix):
    inputs = load_inputs(put(tmp_path, **{f"a_{suffix}": encoded(COLOUR, form)}))
    assert np.array_equal((inputs[0] * 255).round().byte().numpy(), COLOUR.transpose(2, 0, 1))


@pytest.mark.parametrize("form", ["JPEG", "WEBP"])
def test_lossy_formats_come_close(tmp_path, form):
    even = np.full((8, 8, 3), (200, 100, 50), np.uint8)
    inputs = load_inputs(put(tmp_path, **{f"a_{form.lower()}": encoded(even, form)}))
    assert ((inputs * 255 - torch.tensor([200.0, 100.0, 50.0])[:, None, None]).abs() < 6).all()


def test_channels_choose_grey_or_colour(tmp_path):
    put(tmp_path, a_png=encoded(COLOUR), b_png=encoded(GREY), c_png=encoded(COLOUR, mode="RGBA"))
    put(tmp_path, d_png=encoded(COLOUR, mode="P"), e_png=encoded(GREY, mode="LA"), f_png=encoded(GREY, mode="1"))
    colour, grey = load_inputs(tmp_path, channels=3), load_inputs(tmp_path, channels=1)
    assert (colour.shape, grey.shape) == ((6, 3, 4, 6), (6, 1, 4, 6))
    assert torch.equal(colour[1], grey[1].expand(3, 4, 6))
    assert torch.equal(colour[0], colour[2])
    luma = (COLOUR * np.array([0.299, 0.587, 0.114])).sum(-1)
    assert np.abs(grey[0, 0].numpy() * 255 - luma).max() <= 1


def test_size_makes_all_alike(tmp_path):
    put(tmp_path, a_png=encoded(COLOUR), b_png=encoded(np.full((9, 5, 3), 51, np.uint8)))
    inputs = load_inputs(tmp_path, size=(4, 6))
    assert inputs.shape == (2, 3, 4, 6)
    assert np.array_equal((inputs[0] * 255).round().byte().numpy(), COLOUR.transpose(2, 0, 1))
    assert torch.allclose(inputs[1], torch.tensor(0.2))


BROKEN = {
    "nothing": (b"", "cannot be read"),
    "text": (b"not an image", "cannot be read"),
    "cut": (encoded(COLOUR)[:-40], "cannot be read"),
    "cut JPEG": (encoded(COLOUR, "JPEG")[:-80], "cannot be read"),
    "check sum": (encoded(COLOUR).replace(b"IDAT", b"IDAX"), "cannot be read"),
    "a program for another reader": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n", "cannot be read"),
    "16 bits": (encoded(GREY.astype(np.uint16) * 200), "expected 8 bits for each channel; got mode I;16"),
    "floats": (encoded(GREY.astype(np.float32), "TIFF"), "expected 8 bits for each channel; got mode F"),
    "another size": (encoded(COLOUR[:, :5]), "expected 4x6 in colour, like a.png; got 4x5 in colour; give size"),
    "grey": (encoded(GREY), "expected 4x6 in colour, like a.png; got 4x6 in grey; give channels"),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_an_image_that_cannot_be_used_is_named(tmp_path, content, message):
    put(tmp_path, a_png=encoded(COLOUR), b_png=content)
    with pytest.raises(DataError, match=message) as caught:
        load_inputs(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'b.png'}: ")


@pytest.mark.parametrize("most", [5_000, 9_000])
def test_decompression_bombs_are_refused_whether_pillow_warns_or_raises(tmp_path, monkeypatch, most):
    put(tmp_path, a_png=encoded(np.zeros((100, 101), np.uint8)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    with pytest.raises(DataError, match=r"a\.png: the image cannot be read .*decompression bomb"):
        load_inputs(tmp_path)


def test_folders_without_images_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"expected images .*got 0 other files"):
        load_inputs(tmp_path)
    put(tmp_path, a_npy=b"", below__b_txt=b"", _hidden_png=b"")
    with pytest.raises(DataError, match=r"\.png, .*got 2 other files; give the folder that has them"):
        load_inputs(tmp_path)


def test_a_single_image_is_refused(tmp_path):
    put(tmp_path, a_png=encoded(COLOUR))
    with pytest.raises(DataError, match="expected a folder of images; got a single one"):
        load_inputs(tmp_path / "a.png")


def test_without_pillow_the_remedy_is_named(tmp_path, monkeypatch):
    put(tmp_path, a_png=encoded(COLOUR))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"Pillow is not installed.*netpurify\[data\].*\.npy"):
        load_inputs(tmp_path)


def test_more_images_than_memory_holds_are_refused(tmp_path, monkeypatch):
    def full(*_):
        raise RuntimeError("not enough memory")

    put(tmp_path, a_png=encoded(COLOUR))
    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(DataError, match="1 images of 4x6 need 0 GB, more than there is; give limit"):
        load_inputs(tmp_path)


def test_images_that_would_fill_the_memory_are_refused_before_one_is_resized(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("no image may be read or resized before the memory for all was counted")

    put(tmp_path, a_png=encoded(COLOUR), b_png=encoded(COLOUR))
    monkeypatch.setattr("netpurify.data.inputs.image_folders.free_memory", lambda: 2 * 3 * 9000 * 9000 * 4 - 1)
    with monkeypatch.context() as patched:
        patched.setattr(Image, "open", forbidden)
        with pytest.raises(DataError, match="2 images of 9000x9000 need 2 GB, more than there is; give limit, or a"):
            load_inputs(tmp_path, size=(9000, 9000), channels=3)
    monkeypatch.setattr("netpurify.data.inputs.image_folders.free_memory", lambda: 2 * 3 * 4 * 6 * 4 - 1)
    with pytest.raises(DataError, match="2 images of 4x6 need 0 GB"):
        load_inputs(tmp_path)
    assert load_inputs(tmp_path, limit=1).shape == (1, 3, 4, 6)


def test_free_memory_is_what_the_system_tells():
    assert 1 << 20 < free_memory() < 1 << 62


def chunk(kind: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")


def png(*, kind: int, channels: int, bits: int = 16) -> bytes:
    """Two by two pixels of nought."""
    rows = 2 * (b"\0" + bytes(2 * channels * bits // 8))
    header = struct.pack(">2L5B", 2, 2, bits, kind, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def tiff(*, bits: int, planes: int = 1) -> bytes:
    """Two by two pixels of nought, red, green and blue together or each for itself."""
    places = 3 if planes == 2 else 1
    values = {
        256: [2], 257: [2], 258: [bits] * 3, 259: [1], 262: [2], 273: [0] * places, 277: [3], 278: [2],
        279: [12 * bits // 8 // places] * places, 284: [planes],
    }  # fmt: skip
    after = 8 + 2 + 12 * len(values) + 4
    notes = sum(4 * len(some) for some in values.values() if len(some) > 1)
    values[273] = [after + notes + number * values[279][0] for number in range(places)]
    records, long = b"", b""
    for tag, some in values.items():
        content = struct.pack(f"<{len(some)}L", *some)
        place = content if len(some) == 1 else struct.pack("<L", after + len(long))
        long += b"" if len(some) == 1 else content
        records += struct.pack("<2HL", tag, 4, len(some)) + place
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(values)) + records + bytes(4) + long + bytes(12 * bits // 8)


EIGHT = {
    "PNG": png(kind=2, channels=3, bits=8),
    "TIFF": tiff(bits=8),
    "TIFF in planes": tiff(bits=8, planes=2),
    "PPM": b"P6 2 2 255\n" + bytes(12),
    "PPM of fewer": b"P6 2 2 100\n" + bytes(12),
    "BMP of five and six": b"BM" + struct.pack("<3L", 82, 0, 66)
    + struct.pack("<3L2H6L", 40, 2, 2, 1, 16, 3, 8, 0, 0, 0, 0) + struct.pack("<3L", 0xF800, 0x7E0, 0x1F) + bytes(8),
}  # fmt: skip
SIXTEEN = {
    "PNG grey": (png(kind=0, channels=1), "mode I;16"),
    "PNG colour": (png(kind=2, channels=3), "mode RGB;16B"),
    "PNG grey and transparent": (png(kind=4, channels=2), "mode LA;16B"),
    "PNG colour and transparent": (png(kind=6, channels=4), "mode RGBA;16B"),
    "TIFF": (tiff(bits=16), "16 bits"),
    "TIFF in planes": (tiff(bits=16, planes=2), "16 bits"),
    "PPM": (b"P6 2 2 65535\n" + bytes(24), "values up to 65535"),
    "PPM of nine": (b"P6 2 2 256\n" + bytes(24), "values up to 256"),
    "PPM in words": (b"P3 2 2 999\n" + b"1 " * 12, "values up to 999"),
}


@pytest.mark.parametrize("content", EIGHT.values(), ids=EIGHT.keys())
def test_images_of_eight_bits_or_fewer_are_read(tmp_path, content):
    assert load_inputs(put(tmp_path, a_png=content)).tolist() == torch.zeros(1, 3, 2, 2).tolist()


@pytest.mark.parametrize(("content", "word"), SIXTEEN.values(), ids=SIXTEEN.keys())
@pytest.mark.parametrize("channels", [None, 1, 3])
def test_images_of_more_than_eight_bits_are_refused(tmp_path, content, word, channels):
    with pytest.raises(DataError, match=rf"a\.png: expected 8 bits for each channel; got {word}"):
        load_inputs(put(tmp_path, a_png=content), channels=channels)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX alone")
@pytest.mark.usefixtures("impatient")
def test_a_pipe_among_images_is_refused_and_nobody_waits(tmp_path):
    put(tmp_path, a_png=encoded(COLOUR))
    os.mkfifo(tmp_path / "z.png")
    with pytest.raises(DataError, match=r"z\.png: the image cannot be read .*It is a pipe, a socket or a device"):
        load_inputs(tmp_path)
