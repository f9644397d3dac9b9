"""Damaged, lying and malicious data files give a DataFileError, in little memory; nothing runs."""

import contextlib
import io
import json
import os
import pickle
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tauten.io import DataFileError, open_arrays, read

HUGE = (10**6, 10**6)  # 8 TB of doubles
FUZZ = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def refused(path, message):
    """Refused with a message, before anything large is allocated."""
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match=f"(?s)^cannot read .*{message}"):
            read(path).X[...]
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()


def npy_header(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


def test_npy_bomb(tmp_path):
    (tmp_path / "a.npy").write_bytes(npy_header(HUGE) + b"\0" * 800)
    refused(tmp_path / "a.npy", "header claims 8000000000000 bytes; there are 800")
    (tmp_path / "a.npy").write_bytes(npy_header((-1, 5)))
    refused(tmp_path / "a.npy", "claims the shape")


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_npz_bomb(tmp_path, kind):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", kind) as archive:
        archive.writestr("X.npy", npy_header(HUGE) + b"\0" * 100_000)
    refused(tmp_path / "a.npz", "claims to be 8.0 TB large, but only")


def test_npz_with_fewer_bytes_than_claimed(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy_header((1000, 1000)) + b"\0" * 800)
    refused(tmp_path / "a.npz", "fewer bytes than its header claims")


def test_hdf5_bomb(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", shape=HUGE, chunks=(10, 10), dtype="f8")
    refused(tmp_path / "a.h5", "claims to be 8.0 TB large, but only 0 bytes")


def test_hdf5_link_out_of_the_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    np.full(10, 7.0).tofile(tmp_path / "secret")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        place = [(str(tmp_path / "secret"), 0, 80)]
        file.create_dataset("X", shape=(10, 1), dtype="f8", external=place)
    refused(tmp_path / "a.h5", "lies in another file")


def test_zarr_bomb(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    zarr.create_array(str(tmp_path / "a.zarr"), shape=HUGE, chunks=(10, 10), dtype="f8")
    refused(tmp_path / "a.zarr", "claims to be 8.0 TB large")


def test_mat_bomb(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"X": np.zeros((3, 7))})
    raw = (tmp_path / "a.mat").read_bytes()
    small, large = struct.pack("<ii", 3, 7), struct.pack("<ii", *HUGE)
    assert raw.count(small) == 1
    (tmp_path / "a.mat").write_bytes(raw.replace(small, large))
    refused(tmp_path / "a.mat", "claims to be 8.0 TB large")


def test_image_bomb(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("1", (10_000, 10_000)).save(tmp_path / "a.png")
    refused(tmp_path / "a.png", "exceeds limit")


def test_image_that_promises_too_much(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("L", (5, 7)).save(tmp_path / "a.bmp")
    raw = (tmp_path / "a.bmp").read_bytes()
    small, large = struct.pack("<ii", 5, 7), struct.pack("<ii", 9000, 9000)
    assert raw.count(small) == 1
    (tmp_path / "a.bmp").write_bytes(raw.replace(small, large))
    refused(tmp_path / "a.bmp", "the image claims to be 81.0 MB large")


@pytest.mark.parametrize("packed", [False, True])
def test_mat_types_that_scipy_does_not_check(tmp_path, packed):
    """The type of the numbers, 9 for doubles, is an index into a table of scipy's."""
    scipy.io.savemat(tmp_path / "a.mat", {"X": np.zeros((3, 7))})
    raw = (tmp_path / "a.mat").read_bytes()
    tag, wrong = struct.pack("<ii", 9, 168), struct.pack("<ii", 125, 168)
    assert raw.count(tag) == 1
    variable = raw[128:].replace(tag, wrong)
    if packed:
        body = zlib.compress(variable)
        variable = struct.pack("<ii", 15, len(body)) + body
    (tmp_path / "a.mat").write_bytes(raw[:128] + variable)
    refused(tmp_path / "a.mat", "unknown type 125")


@pytest.mark.parametrize("kind", [0x806, 0x805, 0x005])
def test_mat_flags_that_promise_parts_which_are_not_there(tmp_path, kind):
    """Of complex or of sparse numbers: scipy would read what comes behind."""
    scipy.io.savemat(tmp_path / "a.mat", {"X": np.zeros((3, 7))})
    raw = (tmp_path / "a.mat").read_bytes()
    flags, wrong = struct.pack("<iiI", 6, 8, 6), struct.pack("<iiI", 6, 8, kind)
    assert raw.count(flags) == 1
    (tmp_path / "a.mat").write_bytes(raw.replace(flags, wrong))
    refused(tmp_path / "a.mat", "a variable lacks some of its parts")


def test_mat_with_complex_and_sparse_variables_beside(tmp_path):
    others = {"C": np.array([[1j]]), "S": scipy.sparse.eye_array(3, format="csc")}
    scipy.io.savemat(tmp_path / "a.mat", {"X": np.zeros((3, 7)), **others})
    assert open_arrays(tmp_path / "a.mat")["X"].shape == (3, 7)


def test_mat_nested_too_deep(tmp_path):
    raw = io.BytesIO()
    scipy.io.savemat(raw, {"X": np.zeros((3, 7))})
    flags, cell = struct.pack("<iiII", 6, 8, 1, 0), b""
    for _ in range(5000):
        cell = struct.pack("<ii", 14, 48 + len(cell)) + flags + bytes(32) + cell
    (tmp_path / "a.mat").write_bytes(raw.getvalue()[:128] + cell)
    refused(tmp_path / "a.mat", "")


def test_image_formats_that_start_programs(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    refused(tmp_path / "a.png", "cannot identify image file")


class Evil:
    def __reduce__(self):
        return os.mkdir, ("/nowhere-that-exists/pickle-ran",)


@pytest.fixture
def no_pickle(monkeypatch):
    """Fail if anything is unpickled."""

    def caught(*_, **__):
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, caught)


def test_objects_in_numpy_files(tmp_path, no_pickle):
    objects = np.array([Evil(), Evil()], dtype=object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "a.npz", X=objects)
    for name in ("a.npy", "a.npz"):
        refused(tmp_path / name, "holds Python objects")


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_zarr_that_unpickles(tmp_path, no_pickle, place):
    zarr = pytest.importorskip("zarr", minversion="3")
    path = tmp_path / "a.zarr"
    zarr.create_array(str(path), data=np.ones((4, 4)), zarr_format=2, compressors=None)
    metadata = json.loads((path / ".zarray").read_text())
    codec = {"id": "pickle", "protocol": 5}
    metadata[place] = [codec] if place == "filters" else codec
    (path / ".zarray").write_text(json.dumps(metadata))
    refused(path, "packed by 'pickle', which is not allowed")


def test_zarr_v3_with_an_unknown_codec(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    path = tmp_path / "a.zarr"
    zarr.create_array(str(path), data=np.ones((4, 4)), shards=(4, 4), chunks=(2, 2))
    np.testing.assert_array_equal(read(path).X[...], np.ones((4, 4)))
    metadata = json.loads((path / "zarr.json").read_text())
    inner = metadata["codecs"][0]["configuration"]["codecs"]
    inner.append({"name": "numcodecs.pickle", "configuration": {}})
    (path / "zarr.json").write_text(json.dumps(metadata))
    refused(path, "packed by 'pickle'")


def small_files():
    """One good small file of each kind whose reader is fuzzed, as bytes."""
    X, y = np.arange(24.0).reshape(4, 3, 2), np.arange(4.0)
    files = {}
    for end, write in {
        "npy": lambda f: np.save(f, X),
        "npz": lambda f: np.savez_compressed(f, X=X, y=y),
        "mat": lambda f: scipy.io.savemat(f, {"X": X, "y": y}),
        "csv": lambda f: f.write(b"a,b,y\n" + b"1.5,x,3\n" * 4),
    }.items():
        buffer = io.BytesIO()
        write(buffer)
        files[end] = buffer.getvalue()
    return files


FILES = small_files()


@pytest.mark.parametrize("end", FILES)
@FUZZ
@given(data=st.data())
def test_damaged_files(tmp_path, end, data):
    """Some bytes changed, the end cut off: read, or refused; never another error."""
    raw = bytearray(FILES[end])
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=8)
    ):
        raw[at] = byte
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    path = tmp_path / f"file.{end}"
    path.write_bytes(bytes(raw))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # readers may have doubts of their own
        with contextlib.suppress(DataFileError):
            for array in open_arrays(path).values():
                assert array.nbytes < 2**24
            read(path)


@pytest.mark.parametrize("end", ["h5", "nii", "nii.gz", "png"])
def test_cut_files(tmp_path, end):
    whole = tmp_path / f"a.{end}"
    if end == "h5":
        pytest.importorskip("h5py").File(whole, "w").create_dataset("X", data=np.ones((50, 9)))
    elif end == "png":
        pixels = np.random.default_rng(0).integers(0, 255, (30, 30), np.uint8)
        pytest.importorskip("PIL.Image").fromarray(pixels).save(whole)
    else:
        nibabel = pytest.importorskip("nibabel")
        volume = np.random.default_rng(0).normal(size=(5, 5, 5)).astype(np.float32)
        nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), whole)
    raw = whole.read_bytes()
    part = tmp_path / f"b.{end}"
    for length in {0, 1, 10, len(raw) // 3, len(raw) // 2, len(raw) - 30}:
        part.write_bytes(raw[:length])
        with pytest.raises(DataFileError, match="cannot read"):
            read(part)
