"""The COVID-CT images, from wherever they are, or simulated ones in their place."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

SIDE = 150
SUFFIXES = {".png", ".jpg", ".jpeg"}
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Images:
    """Greyscale images with labels.

    Parameters
    ----------
    images : array (n, 150, 150)
        Grey levels, 0 to 255.
    labels : array (n,)
        1 is COVID.
    names : array (n,) of str
        File names.
    split : array (n,) of str
        The official ``train``, ``val`` or ``test``; empty where it is not known.
    origin : str
        Where they come from, for the report.
    """

    images: np.ndarray
    labels: np.ndarray
    names: np.ndarray
    split: np.ndarray
    origin: str

    def sources(self) -> np.ndarray:
        """The paper, patient or case that each image is of, as its name tells."""
        pairs = zip(self.names, self.labels, strict=True)
        return np.array([f"{label}:{source_of(str(name))}" for name, label in pairs])


def source_of(name: str) -> str:
    """The part of a file name that images of one source share.

    COVID names begin with the source paper's id, before ``-p``; the others with a number, before
    ``%`` or alone.

    Examples
    --------
    >>> source_of("kjr-21-e24-p5-29.png"), source_of("71%0.jpg"), source_of("1045.png")
    ('kjr-21-e24', '71', '1045')
    """
    stem = PurePosixPath(name).stem
    return re.split(r"-p\d|%", stem)[0]


def load(path: str | Path) -> Images:
    """Read the images from an npz, or from the data set's folders or zips.

    Parameters
    ----------
    path : path
        An npz with ``images``, ``labels``, ``names`` and perhaps ``split``; or a folder with PNG or
        JPG files in folders or zips named ``…COVID`` and ``…NonCOVID``, and perhaps the official
        lists ``trainCT_COVID.txt`` and so on.
    """
    path = Path(path)
    if path.is_file() and path.suffix == ".npz":
        return _from_npz(path)
    if not path.is_dir():
        raise FileNotFoundError(
            f"data must be a folder of the COVID-CT images or an npz; got {str(path)!r}, which is "
            f"{'another kind of file' if path.exists() else 'not there'}"
        )
    found = [(name, label, image) for name, label, image in _from_folder(path)]
    if len({label for _, label, _ in found}) < 2:
        raise ValueError(
            f"data must hold PNG or JPG images in folders or zips named CT_COVID and CT_NonCOVID; "
            f"found {len(found)} image(s) of one kind or none in {str(path)!r}"
        )
    names = np.array([name for name, _, _ in found])
    labels = np.array([label for _, label, _ in found])
    images = np.stack([image for _, _, image in found])
    official = _official(path)
    split = np.array([official.get((n, int(k)), "") for n, k in zip(names, labels, strict=True)])
    return Images(images, labels, names, split, f"{len(names)} images of COVID-CT")


def _from_npz(path: Path) -> Images:
    try:
        with np.load(path, allow_pickle=False) as archive:
            images, labels, names = (archive[key] for key in ("images", "labels", "names"))
            split = archive["split"] if "split" in archive else np.full(len(labels), "")
    except (KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"data must be an npz with images, labels and names; {str(path)!r} is not: {error}"
        ) from error
    if images.ndim != 3 or not len(images) == len(labels) == len(names) == len(split):
        raise ValueError(
            f"data must hold images (n, height, width) and n labels, names and splits; got "
            f"{images.shape}, {labels.shape}, {names.shape}, {split.shape}"
        )
    images = np.stack([_resized(image) for image in images])
    origin = f"{len(labels)} images of COVID-CT"
    return Images(images, labels.astype(int), names.astype(str), split.astype(str), origin)


def _label(parts: tuple[str, ...]) -> int | None:
    """What the nearest folder or zip that speaks of COVID says."""
    for part in reversed(parts):
        if "covid" in part.lower():
            return 0 if "non" in part.lower() else 1
    return None


def _from_folder(folder: Path) -> Iterator[tuple[str, int, np.ndarray]]:
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.suffix.lower() == ".zip":
            yield from _from_zip(file, parts)
        elif file.suffix.lower() in SUFFIXES and _label(parts[:-1]) is not None:
            yield file.name, int(_label(parts[:-1]) or 0), _read_image(file.read_bytes(), str(file))


def _from_zip(file: Path, parts: tuple[str, ...]) -> Iterator[tuple[str, int, np.ndarray]]:
    try:
        with zipfile.ZipFile(file) as archive:
            for name in sorted(archive.namelist()):
                inside = PurePosixPath(name)
                label = _label((*parts, *inside.parts[:-1]))
                hidden = "__MACOSX" in inside.parts
                if inside.suffix.lower() in SUFFIXES and label is not None and not hidden:
                    yield inside.name, label, _read_image(archive.read(name), name)
    except zipfile.BadZipFile as error:
        raise ValueError(f"data: {str(file)!r} is not a zip file that can be read") from error


def _read_image(content: bytes, name: str) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    except (UnidentifiedImageError, OSError) as error:
        raise ValueError(f"data: {name!r} is not an image that can be read: {error}") from error


def _resized(image: np.ndarray) -> np.ndarray:
    if image.shape == (SIDE, SIDE):
        return image
    from PIL import Image

    whole = Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))
    return np.asarray(whole.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def _official(folder: Path) -> dict[tuple[str, int], str]:
    """The official split, from its lists of names."""
    found = {}
    for file in sorted(folder.rglob("*.txt")):
        kind = next((s for s in SPLITS if file.stem.lower().startswith(s)), None)
        label = _label((file.stem,))
        if kind is not None and label is not None:
            for name in file.read_text(encoding="utf-8", errors="replace").split("\n"):
                found[name.strip(), label] = kind
    return found


def synthetic(seed: int, *, positives: int = 349, negatives: int = 397) -> Images:
    """Images in the place of the real ones: two lungs, patches in the positives, several a source.

    Examples
    --------
    >>> synthetic(0, positives=4, negatives=5).images.shape
    (9, 150, 150)
    """
    rng = np.random.default_rng(seed)
    labels = np.repeat([1, 0], [positives, negatives])
    names, images = [], []
    grid = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    source, centre = "", np.zeros(2)
    for k, label in enumerate(labels):
        if k % 4 == 0 or k == positives:  # slices of one source look alike
            source, centre = f"{k}", rng.normal(scale=0.08, size=2)
        names.append(f"simulated-{source}-p{k}.png" if label else f"{source}%{k}.png")
        images.append(_slice(grid, centre, bool(label), rng))
    split = rng.choice(SPLITS, size=len(labels), p=[0.57, 0.16, 0.27])
    origin = "SIMULATED images, not CT scans: no data were given"
    return Images(np.stack(images), labels, np.array(names), split, origin)


def _slice(grid: np.ndarray, centre: np.ndarray, ill: bool, rng: np.random.Generator) -> np.ndarray:
    y, x = grid
    picture = np.full((SIDE, SIDE), 200.0)
    for side in (-1, 1):
        lung = ((x - side * 0.42 - centre[0]) / 0.33) ** 2 + ((y - centre[1]) / 0.6) ** 2 < 1
        picture[lung] = 40
        for _ in range(rng.poisson(1.2 if ill else 0.6)):
            a, b = rng.normal([side * 0.42, 0.2], 0.2)
            patch = np.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.02)
            picture += np.where(lung, 110 * patch, 0)
    picture += 12 * rng.standard_normal(picture.shape)
    return np.clip(picture, 0, 255).astype(np.uint8)
