"""Folders of images or of NIfTI volumes: a sample per file, classes in subfolders."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Arrays
from .limits import DataFileError, check_claim, check_memory, missing_extra, reading

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif", ".pgm", ".ppm", ".webp")
VOLUMES = (".nii", ".nii.gz")
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "GIF", "PPM", "WEBP")  # EPS would start a program
FOLDER, NAME = "folder", "name"


class Folder(Arrays):
    """The files of a folder and of its subfolders, in the order of their names.

    Its arrays are ``""``, the samples; ``"folder"``, the subfolder that each lies in, where all do;
    and ``"name"``.

    Parameters
    ----------
    path : str
    size : sequence of int, optional
        Height and width to resize images to. By default they must all have one size.
    """

    def __init__(self, path: str, size: Sequence[int] | None = None) -> None:
        folder, self.size = Path(path), size
        files = sorted(_find(folder))
        kinds = {file.name.lower().endswith(VOLUMES) for file in files}
        if not kinds:
            raise DataFileError("neither it nor its subfolders hold images or NIfTI files")
        if len(kinds) > 1:
            raise DataFileError("it holds both images and NIfTI files: part them")
        self.volumes = kinds.pop()
        members: dict[str, Any] = {"": files}
        if all(file.parent != folder for file in files):
            members[FOLDER] = [file.parent.name for file in files]
        members[NAME] = [file.relative_to(folder).as_posix() for file in files]
        super().__init__(path, members)

    def read(self, key: str, member: Any) -> np.ndarray:
        """Read the samples; names are there already."""
        return np.array(member) if key else _stack(member, self.size, self.volumes)


def _find(folder: Path) -> Iterator[Path]:
    for file in (*folder.glob("*"), *folder.glob("*/*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if not hidden and file.name.lower().endswith(IMAGES + VOLUMES) and file.is_file():
            yield file


def _stack(files: Sequence[Path], size: Sequence[int] | None, volumes: bool) -> np.ndarray:
    """Samples of one shape, in single precision, which is all that scanners and cameras give."""
    samples: np.ndarray | None = None
    for k, file in enumerate(files):
        with reading(file):
            sample = read_volume(file) if volumes else read_image(file, size)
            if size is not None and sample.shape != tuple(size):
                raise DataFileError(
                    f"its shape is {sample.shape}, not {tuple(size)}: only images are resized; "
                    f"resample volumes beforehand"
                )
            if samples is None:
                check_memory("the folder", 4 * len(files) * sample.size)
                samples = np.empty((len(files), *sample.shape), np.float32)
            if sample.shape != samples.shape[1:]:
                hint = "Register them to one grid" if volumes else "Give a size to resize them to"
                raise DataFileError(
                    f"its shape is {sample.shape}, but the first file's {samples.shape[1:]}. {hint}"
                )
            samples[k] = sample
    assert samples is not None  # a folder without files is not opened
    return samples


def read_image(path: str | os.PathLike[str], size: Sequence[int] | None = None) -> np.ndarray:
    """Return an image (height, width) in grey, from 0 (black) to 1 (white)."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("pillow", "images") from error
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=FORMATS) as image:
            check_claim("the image", math.prod(image.size), os.path.getsize(path))
            wide = image.mode.startswith("I")  # 16 bits
            grey = image.convert("F") if wide else image.convert("L").convert("F")
    if size is not None:
        grey = grey.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return np.asarray(grey, np.float32) / (65535 if wide else 255)


def read_volume(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the voxels of a NIfTI file."""
    try:
        import nibabel
    except ImportError as error:
        raise missing_extra("nibabel", "NIfTI files") from error
    image: Any = nibabel.load(path)
    bytes_claimed = math.prod(image.shape) * image.get_data_dtype().itemsize
    check_claim("the volume", bytes_claimed, os.path.getsize(path))
    check_memory("the volume", 4 * math.prod(image.shape))
    return np.asarray(image.dataobj, np.float32)
