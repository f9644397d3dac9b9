"""Data files that are fuzzed, format by format."""

import contextlib

import numpy as np
import scipy.io

import tauten as tt
from fuzz_inputs import mutated
from tauten.data.stored import stored

LARGEST = 2**24  # entries: what any file may claim, however small it is
X, Y = np.arange(24.0).reshape(4, 3, 2), np.arange(4.0)


class Files:
    """Data files of one format, or of a few: mutated, opened, and read as a fit would."""

    promised = (tt.io.DataFileError,)

    def __init__(self, folder):
        self.write(folder)
        self.paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self.good = [path.read_bytes() for path in self.paths]

    def opened(self, path):
        """What is opened when one of the files was mutated."""
        return path

    def __call__(self, rng):
        which = rng.integers(len(self.paths))
        self.paths[which].write_bytes(mutated(rng, self.good[which]))
        try:
            found = tt.io.read(self.opened(self.paths[which])).X
            array = stored(found)
            for part in [found] if array is None else self.parts(array):
                assert np.asarray(part).size < LARGEST
        finally:
            self.paths[which].write_bytes(self.good[which])

    @staticmethod
    def parts(array):
        """Parts of an array on disk, which promises to be read or to raise an OSError."""
        with contextlib.suppress(OSError):
            yield from array.parts()


class Npy(Files):
    def write(self, folder):
        np.save(folder / "data.npy", X)


class Npz(Files):
    def write(self, folder):
        np.savez(folder / "data.npz", X=X, y=Y)
        np.savez_compressed(folder / "packed.npz", X=X, y=Y)


class Tables(Files):
    def write(self, folder):
        text = "a,b,c,y\n1,2,3,0.5\n4,5,6,-1e3\n,nan,x,7\n"
        (folder / "data.csv").write_text(text, encoding="utf-8")
        (folder / "data.tsv").write_text(text.replace(",", "\t"), encoding="utf-8")


class Matlab(Files):
    def write(self, folder):
        words = np.array(["a", "bc"], dtype=object)
        for name, packed in {"plain": False, "packed": True}.items():
            contents = {"X": X, "y": Y, "words": words}
            scipy.io.savemat(folder / f"{name}.mat", contents, do_compression=packed)
        scipy.io.savemat(folder / "old.mat", {"X": X[0]}, format="4")


class Hdf5(Files):
    def write(self, folder):
        import h5py

        with h5py.File(folder / "data.h5", "w") as file:
            file["X"], file["y"] = X, Y
        with h5py.File(folder / "packed.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(2, 3, 2), compression="gzip", shuffle=True)


class Zarr(Files):
    """Files of a Zarr folder, one of which was mutated."""

    def write(self, folder):
        import zarr

        for version in (2, 3):
            group = zarr.open_group(folder / f"{version}.zarr", mode="w", zarr_format=version)
            group.create_array("X", data=X, chunks=(2, 3, 2))
            group.create_array("y", data=Y)

    def opened(self, path):
        return next(parent for parent in path.parents if parent.suffix == ".zarr")


class Images(Files):
    def write(self, folder):
        from PIL import Image

        picture = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
        for end in ("png", "jpg", "bmp", "tif", "gif", "pgm", "webp"):
            picture.save(folder / f"a.{end}")


class Volumes(Files):
    def write(self, folder):
        import nibabel

        image = nibabel.Nifti1Image(X.astype(np.float32), np.eye(4))
        for end in ("nii", "nii.gz"):
            nibabel.save(image, folder / f"a.{end}")


FORMATS = {
    "npy": Npy,
    "npz": Npz,
    "tables": Tables,
    "matlab": Matlab,
    "hdf5": Hdf5,
    "zarr": Zarr,
    "images": Images,
    "volumes": Volumes,
}
