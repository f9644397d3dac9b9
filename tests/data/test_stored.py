"""Arrays on disk give out what is in them, and notice when it changes."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from stores import KINDS, hdf5, hdf5_chunks, memmap, zarr_chunks
from tauten.data.stored import stored


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, ">f8"])
def test_reads_what_is_there(kind, dtype, rng, tmp_path):
    array = (100 * rng.normal(size=(40, 3, 2))).astype(dtype)
    found = stored(kind(array, tmp_path))
    assert found.shape == array.shape
    assert found.dtype == (np.float32 if array.dtype == np.float32 else np.float64)
    for rows in (slice(None), slice(5, 17), np.array([0, 1, 8, 20, 21, 39])):
        np.testing.assert_array_equal(found[rows], array[rows])
        assert found[rows].dtype == found.dtype
    np.testing.assert_array_equal(np.concatenate(list(found.parts())), array)


def test_arrays_in_memory_are_not_stored():
    assert stored(np.ones(3)) is None
    assert stored([1.0, 2.0]) is None


def test_a_read_maps_no_memory(rng, tmp_path):
    """Mapped pages would count as memory of the process, however large the file."""
    array = memmap(rng.normal(size=(4000, 1000)), tmp_path)
    before = _mapped_pages()
    stored(array)[:2000]
    assert _mapped_pages() - before < array.nbytes / 10


def _mapped_pages():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssFile")).split()[1])


@pytest.mark.parametrize("kind", [memmap, hdf5, hdf5_chunks, zarr_chunks])
def test_a_changed_file_is_noticed(kind, rng, tmp_path):
    array = stored(kind(rng.normal(size=(40, 3)), tmp_path))
    array.check_unchanged()
    path = next(p for p in array._files() if p.name != "zarr.json")
    os.utime(path, ns=(1, 1))
    with pytest.raises(OSError, match="changed while it was in use"):
        array.check_unchanged()


def test_a_file_cut_short(rng, tmp_path):
    array = stored(memmap(rng.normal(size=(400, 30)), tmp_path))
    os.truncate(tmp_path / "a.npy", 9000)
    np.testing.assert_array_equal(array[:5].shape, (5, 30))
    with pytest.raises(OSError, match=r"samples 30 to 50 .* the file ends .* bytes too early"):
        array[30:50]


def test_a_chunk_that_is_damaged_or_lost(rng, tmp_path):
    array = stored(zarr_chunks(rng.normal(size=(40, 3)), tmp_path))
    path = next(p for p in array._files() if p.name != "zarr.json")
    path.write_bytes(b"no")
    with pytest.raises(OSError, match="could not be read"):
        array[:]
    shutil.rmtree(tmp_path / "a.zarr")
    with pytest.raises(OSError, match="changed while it was in use"):
        array.check_unchanged()


HDF5 = {  # how a dataset is kept, and whether its file holds the numbers one after the other
    "contiguous": ({}, True),
    "chunks": ({"chunks": (5, 3, 4)}, True),
    "resizable": ({"chunks": (5, 3, 4), "maxshape": (None, 9, 9)}, True),
    "single precision": ({"chunks": (4, 3, 4), "dtype": "f4"}, True),
    "chunks of part of a sample": ({"chunks": (5, 3, 2)}, False),
    "compressed": ({"chunks": (5, 3, 4), "compression": "gzip"}, False),
    "shuffled": ({"chunks": (5, 3, 4), "shuffle": True}, False),
    "checksums": ({"chunks": (5, 3, 4), "fletcher32": True}, False),
    "other byte order": ({"dtype": ">f8"}, False),
    "integers": ({"dtype": "i2"}, False),
}


@pytest.mark.parametrize("kind", HDF5)
def test_datasets_are_read_through_their_files_where_these_hold_the_numbers(
    kind, rng, tmp_path, monkeypatch
):
    h5py = pytest.importorskip("h5py")
    options, plain = HDF5[kind]
    A = (10 * rng.normal(size=(37, 3, 4))).astype(options.get("dtype", float))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=A, **options)
    with h5py.File(tmp_path / "x.h5") as file:
        array = stored(file["X"])
        if plain:
            monkeypatch.delattr(h5py.Dataset, "read_direct")  # it would stop all other threads
        for low, high in ((0, 37), (3, 11), (5, 10), (36, 37), (4, 4)):
            found = array.read(low, high)
            np.testing.assert_array_equal(found, A[low:high])
            assert found.dtype == array.dtype


@pytest.mark.parametrize("chunks", [None, (5, 3, 4)])
def test_samples_that_were_never_written_are_what_the_file_says(rng, tmp_path, chunks):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", (20, 3, 4), chunks=chunks, dtype=float, fillvalue=7.0)
        if chunks:
            file["X"][5:10] = 1.0
    with h5py.File(tmp_path / "x.h5") as file:
        found = stored(file["X"]).read(3, 12)
    expected = np.full((9, 3, 4), 7.0)
    if chunks:
        expected[2:7] = 1.0
    np.testing.assert_array_equal(found, expected)


def test_a_file_open_for_writing_is_read_by_h5py(rng, tmp_path):
    """What was written may not be in the file yet."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((20, 3)))
        file.flush()
        array = stored(file["X"])
        file["X"][...] = 2.0
        np.testing.assert_array_equal(array.read(0, 20), np.full((20, 3), 2.0))


@pytest.mark.parametrize("chunks", [None, (5, 3)])
def test_a_user_block_and_other_drivers(rng, tmp_path, chunks):
    """Places in the file count the block."""
    h5py = pytest.importorskip("h5py")
    A = rng.normal(size=(20, 3))
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file.create_dataset("X", data=A, chunks=chunks)
    for driver in (None, "core", "stdio"):
        with h5py.File(tmp_path / "x.h5", driver=driver) as file:
            np.testing.assert_array_equal(stored(file["X"]).read(2, 9), A[2:9])


def test_datasets_of_other_files(rng, tmp_path):
    h5py = pytest.importorskip("h5py")
    A = rng.normal(size=(20, 3))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = A
    with h5py.File(tmp_path / "x.h5", "w") as file:
        layout = h5py.VirtualLayout(A.shape, float)
        layout[:] = h5py.VirtualSource(str(tmp_path / "a.h5"), "X", A.shape)
        file.create_virtual_dataset("virtual", layout)
        where = [(str(tmp_path / "x.raw"), 0, A.nbytes)]
        file.create_dataset("external", A.shape, float, external=where)[...] = A
    with h5py.File(tmp_path / "x.h5") as file:
        for name in ("virtual", "external"):
            np.testing.assert_array_equal(stored(file[name]).read(2, 9), A[2:9])
