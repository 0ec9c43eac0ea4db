"""Parsers of files that may be anything: what is right is read exactly, what is wrong is refused by name."""

import gzip
import io
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image

from netpurify.data.datasets import npm
from netpurify.data.datasets.formats import parse_idx, parse_labels, parse_records, records_from_strip, unzipped
from netpurify.errors import DataError
from tests.data.made_data import batch, idx, small_cifar10, strip, tarball


def test_idx_images_and_labels():
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(parse_idx(idx(images), "images"), images)
    assert parse_idx(b"\0\0\x08\x01\0\0\0\x02\x07\x09", "labels").tolist() == [7, 9]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08",
        b"\0\0\x08\x03\0\0",
        idx(np.ones((2, 3, 4), np.uint8))[:-1],
        idx(np.ones((2, 3, 4), np.uint8)) + b"\0",
        idx(np.ones((0, 3, 4), np.uint8)),
        b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0",  # floats
        b"\x80\x04\x95" + bytes(30),  # a pickle
        b"<html>not found</html>",
    ],
    ids=["nothing", "magic cut", "header cut", "one short", "one over", "no image", "floats", "pickle", "web page"],
)
def test_idx_refuses(content):
    with pytest.raises(DataError, match="some file"):
        parse_idx(content, "some file")


def test_idx_of_a_shape_beyond_memory_is_refused_at_once():
    with pytest.raises(DataError, match="cut short"):
        parse_idx(b"\0\0\x08\x03" + b"\xff" * 12, "some file")


def test_records_put_the_planes_back_together():
    content = bytes([6]) + bytes([10]) * 1024 + bytes([20]) * 1024 + bytes(range(256)) * 4
    images, labels = parse_records(content, "batch")
    assert labels.tolist() == [6]
    assert images.shape == (1, 32, 32, 3)
    assert images[0, 0, 5].tolist() == [10, 20, 5]
    assert images[0, 1, 0].tolist() == [10, 20, 32]


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes(3074), b"\x0a" + bytes(3072)])
def test_records_refuse(content):
    with pytest.raises(DataError, match="batch"):
        parse_records(content, "batch")


def test_strip_becomes_the_binary_version():
    made = small_cifar10()
    images, labels = made.images[:4], made.labels[:4]
    assert records_from_strip(strip(images), labels.tolist(), "strip") == batch(images, labels)


def test_strip_of_another_shape_or_mode_is_refused():
    images = small_cifar10().images
    with pytest.raises(DataError, match="1024 columns and 5 rows"):
        records_from_strip(strip(images), [0] * 5, "strip")
    stream = io.BytesIO()
    Image.new("L", (1024, 2)).save(stream, "PNG")
    with pytest.raises(DataError, match="got L"):
        records_from_strip(stream.getvalue(), [0, 0], "strip")


def test_damaged_png_is_refused():
    png = strip(small_cifar10().images)
    for content in (b"", png[:20], png[: len(png) // 2], b"GIF89a" + bytes(20)):
        with pytest.raises(DataError, match="cannot be read"):
            records_from_strip(content, [0] * 6, "strip")


def test_pillow_limit_is_respected_and_left_alone(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match="cannot be read"):
        records_from_strip(strip(small_cifar10().images), [0] * 6, "strip")
    assert Image.MAX_IMAGE_PIXELS == 100


def test_missing_pillow_is_named_with_its_remedy(monkeypatch):
    png = strip(small_cifar10().images)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"pip install 'netpurify\[data\]'"):
        records_from_strip(png, [0] * 6, "strip")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[10]", b"[-1]", b"[1.0]", b"[true]", b'["1"]', b"[1", b"[" * 100_000]
)
def test_labels_refuse(content):
    with pytest.raises(DataError, match="labels"):
        parse_labels(content, "labels")


def test_gzip_is_opened_to_its_limit_only():
    assert unzipped(b"plain", 5, "file") == b"plain"
    assert unzipped(gzip.compress(b"12345"), 5, "file") == b"12345"
    assert len(unzipped(gzip.compress(bytes(10_000_000)), 5, "file")) == 6


def test_damaged_gzip_is_refused():
    zipped = bytearray(gzip.compress(bytes(range(256))))
    with pytest.raises(DataError, match="damaged"):
        unzipped(bytes(zipped[:-9]), 256, "file")
    zipped[-6] ^= 1  # in the checksum
    with pytest.raises(DataError, match="damaged"):
        unzipped(bytes(zipped), 256, "file")


def test_tarball_gives_the_members_asked_for(tmp_path):
    path = tarball(tmp_path / "some.tgz", {"package/a": b"1", "package/b": b"22", "package/c": b"333"})
    assert npm.read_members(path, {"package/a": 1, "package/c": 3}) == {"package/a": b"1", "package/c": b"333"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["some.tgz"]


def test_tarball_without_a_member_or_with_too_large_a_one_is_refused(tmp_path):
    path = tarball(tmp_path / "some.tgz", {"package/a": b"1234"})
    with pytest.raises(DataError, match="package/b"):
        npm.read_members(path, {"package/a": 4, "package/b": 1})
    with pytest.raises(DataError, match="may have 3 bytes; it has 4"):
        npm.read_members(path, {"package/a": 3})


@pytest.mark.parametrize("name", ["../evil", "package/../../evil", "/evil"])
def test_path_that_leads_outside_is_refused(tmp_path, name):
    (tmp_path / "inner").mkdir()
    path = tarball(tmp_path / "inner" / "some.tgz", {name: b"x"})
    with pytest.raises(DataError, match="leads outside"):
        npm.read_members(path, {"package/a": 4})
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_link_or_device_in_place_of_a_file_is_refused(tmp_path, kind):
    entry = tarfile.TarInfo("package/a")
    entry.type, entry.linkname = kind, "/etc/passwd"
    with pytest.raises(DataError, match="link"):
        npm.read_members(tarball(tmp_path / "some.tgz", {}, entry), {"package/a": 4})


def test_tarball_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npm, "LARGEST", 100_000)
    path = tarball(tmp_path / "some.tgz", {"package/other": bytes(1_000_000), "package/a": b"1"})
    with pytest.raises(DataError, match="may unpack to 100000 bytes"):
        npm.read_members(path, {"package/a": 1})


def test_damaged_tarball_is_refused(tmp_path):
    path = tarball(tmp_path / "some.tgz", {"package/a": np.random.default_rng(0).bytes(50_000)})
    whole = path.read_bytes()
    for content in (b"", b"not gzip", whole[:30_000], gzip.compress(b"not a tarball" * 100)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"some\.tgz"):
            npm.read_members(path, {"package/a": 50_000})
