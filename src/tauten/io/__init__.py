"""Models in files, and data from files; without pickle.

The file of a model is a zip archive in numpy's npz layout: ``model.json`` says what the model is,
and one ``.npy`` member holds each of its arrays. Its last 64 bytes, the archive's comment, are the
SHA-256 of all the bytes before them. Nothing in a file names code: classes are looked up by name in
a fixed list and in the registries of losses, robust gradients and solvers.

:func:`read` reads data, and :func:`open_arrays` says what a file holds.
"""

from __future__ import annotations

import json
import os
from typing import Any

from .._archive import ArchiveError, pack, unpack
from .._files import write_whole
from .._versions import VERSION
from .codec import Decoder, Encoder
from .dataset import Dataset, read
from .limits import DataFileError
from .models import TEXT, ModelFileError, is_model
from .sources import open_arrays

__all__ = [
    "DataFileError",
    "Dataset",
    "ModelFileError",
    "is_model",
    "load",
    "open_arrays",
    "read",
    "save",
]

FORMAT = 1  # raised when files change in a way that older versions cannot read


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model to one file; :func:`load` gives back one that predicts exactly the same.

    The file is written beside its place and moved there when complete. Scikit-learn's requests for
    metadata routing are not saved.

    Parameters
    ----------
    model : TensorRegressor, TensorClassifier, TensorPCA, TensorScaler, Tensorize or Tucker
    path : str or path-like
        An existing file is replaced.

    Raises
    ------
    TypeError
        If the model, or something in it, is of a kind that has no place in a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import tauten as tt
    >>> data = tt.datasets.make_model("I", 300, rng=0)
    >>> model = tt.TensorRegressor(rank=1).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     tt.save(model, path)
    ...     again = tt.load(path)
    >>> bool((again.predict(data.X) == model.predict(data.X)).all())
    True
    """
    encoder = Encoder()
    document = {"format": FORMAT, "tauten": VERSION, "model": encoder.model(model)}
    text = json.dumps(document, indent=1, allow_nan=False)
    write_whole(path, pack(TEXT, text, encoder.arrays))


def load(path: str | os.PathLike[str]) -> Any:
    """Load what :func:`save` saved. Runs nothing from the file, whoever made it.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    The model.

    Raises
    ------
    ModelFileError
        A ``ValueError``: the file is damaged, is of another kind or from a newer version, or names
        something that this version does not know.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import tauten as tt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tensor.npz")
    ...     tt.save(tt.Tucker(np.ones((1, 1)), (np.ones((3, 1)), np.ones((2, 1)))), path)
    ...     tt.load(path).shape
    (3, 2)
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        text, arrays = unpack(TEXT, data)
        document = json.loads(text, parse_constant=_refuse)
        _check_format(document)
        return Decoder(arrays).model(document["model"])
    except (ArchiveError, ModelFileError) as error:
        raise ModelFileError(f"cannot load {os.fspath(path)!r}: {error}") from error
    except Exception as error:  # whatever a file made to break us ends here
        raise ModelFileError(
            f"cannot load {os.fspath(path)!r}: its contents make no sense "
            f"({type(error).__name__}: {error})"
        ) from error


def _check_format(document: Any) -> None:
    version = document.get("format") if isinstance(document, dict) else None
    if not isinstance(version, int) or version < 1:
        raise ModelFileError("it does not say which format it has")
    if version > FORMAT:
        raise ModelFileError(
            f"it has format {version}, from tauten {document.get('tauten')!s:.20}; this version "
            f"reads formats up to {FORMAT}. Upgrade tauten"
        )


def _refuse(constant: str) -> None:
    raise ModelFileError(f"{constant} is not JSON")
