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
