"""Arrays on disk, of every kind that is read."""

import h5py
import numpy as np
import zarr


def memmap(array, path):
    np.save(path / "a.npy", array)
    return np.load(path / "a.npy", mmap_mode="r")


def memmap_part(array, path):
    """The end of a larger map, whose own offset is not zero."""
    before = np.full((3, *array.shape[1:]), -1, array.dtype)
    return memmap(np.concatenate([before, array]), path)[3:]


def fortran(array, path):
    """A map that is not stored sample by sample."""
    np.save(path / "f.npy", np.asfortranarray(array))
    return np.load(path / "f.npy", mmap_mode="r")


def private(array, path):
    """A map with a change that never reached the file."""
    np.save(path / "c.npy", np.zeros_like(array))
    mapped = np.load(path / "c.npy", mmap_mode="c")
    mapped[:] = array
    return mapped


def hdf5(array, path):
    file = h5py.File(path / "a.h5", "w")
    file["X"] = array
    return file["X"]


def hdf5_chunks(array, path):
    file = h5py.File(path / "b.h5", "w")
    chunks = (min(7, len(array)), *array.shape[1:])
    return file.create_dataset("X", data=array, chunks=chunks, compression="gzip")


def zarr_chunks(array, path):
    chunks = (min(7, len(array)), *array.shape[1:])
    stored = zarr.create_array(path / "a.zarr", shape=array.shape, chunks=chunks, dtype=array.dtype)
    stored[:] = array
    return stored


def zarr_memory(array, path):
    stored = zarr.create_array(
        {}, shape=array.shape, chunks=(20, *array.shape[1:]), dtype=array.dtype
    )
    stored[:] = array
    return stored


KINDS = [
    memmap,
    memmap_part,
    fortran,
    private,
    hdf5,
    hdf5_chunks,
    zarr_chunks,
    zarr_memory,
]
