"""Inputs from a folder of images: sorted, scaled to [0, 1], and every image that cannot be used named."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from netpurify.data import load_inputs
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
