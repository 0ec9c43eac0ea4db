"""Images by preprocessor_config.json, beside what transformers' own processors give."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from netpurify.data import load_processed
from netpurify.errors import CheckpointError, DataError, InputError

DRAW = np.random.default_rng(0)
TALL, WIDE = (DRAW.integers(0, 256, shape, dtype=np.uint8) for shape in ((61, 45, 3), (50, 83, 3)))


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    Image.fromarray(TALL).save(folder / "a.png")
    Image.fromarray(WIDE).save(folder / "b.png")
    return folder


PROCESSORS = {
    "ViT": lambda: transformers.ViTImageProcessorPil(size={"height": 20, "width": 24}),
    "ViT without normalising": lambda: transformers.ViTImageProcessorPil(
        size={"height": 20, "width": 24}, do_normalize=False, resample=3
    ),
    "ViT with another scale": lambda: transformers.ViTImageProcessorPil(
        size={"height": 20, "width": 20}, rescale_factor=1 / 127.5
    ),
    "ViT without scale": lambda: transformers.ViTImageProcessorPil(size={"height": 20, "width": 20}, do_rescale=False),
    "CLIP": lambda: transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 30}, crop_size={"height": 26, "width": 26}
    ),
    "ConvNeXt and ResNet": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 28}),
    "large ConvNeXt": lambda: transformers.ConvNextImageProcessorPil(size={"shortest_edge": 384}),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_pixels_are_those_of_transformers(tmp_path, images, name):
    processor = PROCESSORS[name]()
    processor.save_pretrained(tmp_path)
    expected = processor([Image.fromarray(TALL), Image.fromarray(WIDE)], return_tensors="pt")["pixel_values"]
    found = load_processed(images, tmp_path)
    assert found.dtype == torch.float32
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(load_processed(images, tmp_path, limit=1), found[:1])


def settings(tmp_path, **content):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(content))
    return tmp_path


def test_sizes_in_the_forms_of_older_files(tmp_path, images):
    square = settings(tmp_path, size=16, image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5])
    expected = transformers.ViTImageProcessorPil(size={"height": 16, "width": 16})
    found = load_processed(images, square)
    assert torch.allclose(found[:1], expected(Image.fromarray(TALL), return_tensors="pt")["pixel_values"], atol=1e-5)
    edge = settings(tmp_path, size=20, do_center_crop=True, crop_size=18, resample=3, do_normalize=False)
    expected = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 20}, crop_size={"height": 18, "width": 18}, do_normalize=False
    )
    found = load_processed(images, edge)
    assert torch.allclose(found[:1], expected(Image.fromarray(TALL), return_tensors="pt")["pixel_values"], atol=1e-5)


def test_options_come_before_settings(tmp_path, images):
    settings(tmp_path, do_center_crop=True, crop_size=18, size=20, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    plain = load_processed(images, tmp_path, size=(8, 9), mean=[0.0], std=[1.0])
    assert plain.shape == (2, 3, 8, 9)
    pixels = np.asarray(Image.fromarray(TALL).resize((9, 8), Image.Resampling.BILINEAR), np.float32) / 255
    assert torch.allclose(plain[0], torch.from_numpy(pixels).permute(2, 0, 1), atol=1e-6)
    grey = load_processed(images, tmp_path, size=(8, 9), channels=1, mean=[0.0], std=[1.0])
    assert grey.shape == (2, 1, 8, 9)
    settings(tmp_path, size=[8, 9], image_mean=0.5, image_std=0.25)
    assert load_processed(images, tmp_path).shape == (2, 1, 8, 9)


def test_settings_within_those_of_a_processor(tmp_path, images):
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": {"size": [8, 9]}, "more": 1}))
    assert load_processed(images, tmp_path / "processor_config.json").shape == (2, 3, 8, 9)


BAD = {
    "unknown step": ({"size": 8, "do_pad": True}, "do_pad: True may change pixels in a way that is not known here"),
    "unknown size": ({"size": {"longest_edge": 8}}, "size has longest_edge"),
    "size of zero": ({"size": 0}, "0 is no size"),
    "size of a text": ({"size": "large"}, "'large' is no size"),
    "no size": ({"do_resize": True}, "malformed.*--size, --mean, --std"),
    "unknown filter": ({"size": 8, "resample": 9}, "resample 9 is no filter"),
    "two means": ({"size": 8, "image_mean": [1, 2], "image_std": [1, 2]}, "not one number for each channel"),
    "mean of a text": ({"size": 8, "image_mean": "a", "image_std": 1}, "malformed"),
    "deviation of zero": ({"size": 8, "image_mean": 0.5, "image_std": 0.0}, "std must be above 0"),
    "no deviation": ({"size": 8, "image_mean": 0.5}, "malformed"),
    "no share": ({"size": 8, "crop_pct": 7}, "crop_pct 7.0 is no share"),
    "absurd size": ({"size": 80_000}, "pixels; got 80000x80000"),
}


@pytest.mark.parametrize("case", BAD)
def test_settings_that_cannot_be_followed_are_refused(tmp_path, images, case):
    content, words = BAD[case]
    with pytest.raises(InputError, match=words):
        load_processed(images, settings(tmp_path, **content))


def test_steps_that_are_switched_off_do_not_matter(tmp_path, images):
    settings(tmp_path, size=8, do_pad=False, do_reduce_labels=None, _processor_class="X", image_processor_type="X")
    assert load_processed(images, tmp_path).shape == (2, 3, 8, 8)


def test_images_that_do_not_fit_are_named(tmp_path, images):
    small = settings(tmp_path, do_resize=False, do_center_crop=True, crop_size=60)
    with pytest.raises(DataError, match=r"a\.png: 61x45 is smaller than the 60x60 that are cut out of it; give a size"):
        load_processed(images, small)
    edge = settings(tmp_path, size={"shortest_edge": 20})
    with pytest.raises(DataError, match=r"b\.png: expected 27x20 in colour, like a\.png; got 20x33"):
        load_processed(images, edge)
    Image.fromarray(np.zeros((1, 40_000), np.uint8)).save(images / "a.png")
    with pytest.raises(DataError, match=r"a\.png: resized to 224x8960000 it has more than"):
        load_processed(images, settings(tmp_path, size={"shortest_edge": 224}))
    with pytest.raises(CheckpointError, match="expected settings that can be read"):
        load_processed(images, tmp_path / "absent.json")
