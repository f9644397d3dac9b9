"""Every format, from real files: what is read is what was written."""

import gzip
import io
import os

import numpy as np
import pytest
import scipy.io

from tauten.io import DataFileError, open_arrays, read

X = np.random.default_rng(0).normal(size=(6, 3, 4))
Y = np.arange(6.0)
LABELS = np.array(["a", "b", "a", "b", "a", "b"])


def write_npz(path):
    np.savez(path, X=X, y=Y, labels=LABELS)


def write_packed_npz(path):
    np.savez_compressed(path, X=X, y=Y, labels=LABELS)


def write_h5(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, compression="gzip", chunks=(2, 3, 4))
        file["y"] = Y
        file["labels"] = [str(label) for label in LABELS]


def write_zarr(path, version=3):
    zarr = pytest.importorskip("zarr", minversion="3")
    group = zarr.open_group(path, mode="w", zarr_format=version)
    for name, array in {"X": X, "y": Y}.items():
        group.create_array(name, data=array, chunks=(2, *array.shape[1:]))


def write_old_zarr(path):
    write_zarr(path, version=2)


def write_mat(path):
    scipy.io.savemat(path, {"X": X, "y": Y, "labels": np.array(list(LABELS), dtype=object)})


def write_packed_mat(path):
    scipy.io.savemat(path, {"X": X, "y": Y[:, None]}, do_compression=True)


def write_mat73(path):
    """As MATLAB writes it: axes reversed, after 512 bytes of a header; text as numbers."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        file["X"], file["y"] = X.T, Y[None].T.T
        words = [np.array([[ord(c)] for c in label], np.uint16) for label in LABELS]
        for k, word in enumerate(words):
            file[f"#refs#/{k}"] = word
        cells = [file[f"#refs#/{k}"].ref for k in range(len(words))]
        file.create_dataset("labels", data=np.array([cells], dtype=h5py.ref_dtype))
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


WRITERS = {
    "data.npz": [write_npz, write_packed_npz],
    "data.h5": [write_h5],
    "data.zarr": [write_zarr, write_old_zarr],
    "data.mat": [write_mat, write_packed_mat, write_mat73],
}


@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, several in WRITERS.items() for write in several]
)
def test_named_arrays(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    data = read(path)
    np.testing.assert_array_equal(data.X[...], X)
    np.testing.assert_array_equal(data.y, Y)
    assert data.covariates is None
    if "labels" in open_arrays(path):
        np.testing.assert_array_equal(read(path, y="labels").y, LABELS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_mapped(tmp_path, order):
    path = tmp_path / "X.npy"
    np.save(path, np.asarray(X, order=order))
    data = read(path)
    assert isinstance(data.X, np.memmap)
    np.testing.assert_array_equal(data.X, X)
    np.save(tmp_path / "empty.npy", np.empty((0, 3)))
    assert read(tmp_path / "empty.npy").X.shape == (0, 3)


def test_hdf5_and_zarr_are_not_read(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr", minversion="3")
    write_h5(tmp_path / "data.hdf5")
    write_zarr(tmp_path / "data.zarr")
    assert isinstance(read(tmp_path / "data.hdf5").X, h5py.Dataset)
    assert isinstance(read(tmp_path / "data.zarr").X, zarr.Array)


def test_nested_names(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr", minversion="3")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["study/X"] = X
    zarr.open_group(tmp_path / "a.zarr", mode="w").create_group("study").create_array("X", data=X)
    zarr.save_array(tmp_path / "b.zarr", X)
    for name in ("a.h5", "a.zarr", "b.zarr"):
        np.testing.assert_array_equal(read(tmp_path / name).X[...], X)
    assert list(open_arrays(tmp_path / "a.zarr")) == ["study/X"]


def csv_of(delimiter=",", header=True):
    names = [f"pixel{k}" for k in range(12)] + ["age", "sex", "diagnosis", "y"]
    rows = [
        [*map(repr, X[i].ravel().tolist()), str(40 + i), str(i % 2), str(LABELS[i]), str(Y[i])]
        for i in range(6)
    ]
    return "\n".join(delimiter.join(row) for row in ([names] if header else []) + rows) + "\n"


@pytest.mark.parametrize(("delimiter", "end"), [(",", "csv"), (";", "csv"), ("\t", "tsv")])
def test_csv(tmp_path, delimiter, end):
    path = tmp_path / f"table.{end}"
    path.write_text("\ufeff" + csv_of(delimiter), encoding="utf-8")
    data = read(
        path, covariates="age,sex", names="diagnosis", weights="age", shape=(3, 4), ignore="nothing"
    )
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, Y)
    np.testing.assert_array_equal(data.covariates[:, 0], 40 + Y)
    np.testing.assert_array_equal(data.weights, 40 + Y)
    assert data.names == LABELS.tolist()
    again = read(path, x="pixel1*,pixel0", y="diagnosis")
    np.testing.assert_array_equal(again.X, X.reshape(6, 12)[:, [0, 1, 10, 11]])
    np.testing.assert_array_equal(again.y, LABELS)
    np.testing.assert_array_equal(read(path, x="age", y="pixel*").y, X.reshape(6, 12))


def test_csv_without_header(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(csv_of(header=False))
    data = read(path, y="16", ignore="13,14,15", shape=(3, -1))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, Y)


@pytest.mark.parametrize(
    ("first", "header"),
    [
        ("a,b,c,d,e,f", True),  # texts
        ("0,1,2,3,4,label", True),  # a text above a number
        (",0,1,2,3,4", True),  # pandas: an index, and columns that are counted
        ("0,1,2,3,4,5", True),
        ("0,1,2,3,4,7", False),
        ("0.5,1,2,3,4,5", False),
    ],
)
def test_header_or_data(tmp_path, first, header):
    (tmp_path / "t.csv").write_text(f"{first}\n7,7,8,9,1,2\n")
    table = open_arrays(tmp_path / "t.csv")
    assert list(table) == (first.split(",") if header else list("123456"))
    assert len(read(tmp_path / "t.csv").X) == 2 - header
    assert read(tmp_path / "t.csv").X.shape[1] == 6 - first.startswith(",")


def test_csv_with_missing_cells(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('a,b,"c, d"\n1,NA,\n,2,"x, y"\n\n')
    table = open_arrays(path)
    np.testing.assert_array_equal(table["a"], [1, np.nan])
    np.testing.assert_array_equal(table["b"], [np.nan, 2])
    np.testing.assert_array_equal(table["c, d"], ["", "x, y"])


def test_csv_from_the_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(csv_of().encode())))
    data = read("-", x="pixel*", shape=(3, 4))
    np.testing.assert_array_equal(data.X, X)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cells; the first one has 2"),
        ("a,b\n1,2\n3,x\n", "line 3, column 'b': 'x' is not a number"),
        ("a,b\n1,x\n", "column 'b' holds 'x', not numbers"),
        ("y\n1\n", "no column is left for x"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataFileError, match=f"^cannot read .*{message}"):
        read(tmp_path / "t.csv")


def write_images(folder, sizes=((5, 4),) * 4, kind="png"):
    image = pytest.importorskip("PIL.Image")
    pixels = [
        np.random.default_rng(k).integers(0, 256, size, np.uint8) for k, size in enumerate(sizes)
    ]
    for k, values in enumerate(pixels):
        place = folder / ("covid" if k % 2 else "healthy")
        place.mkdir(parents=True, exist_ok=True)
        image.fromarray(values).save(place / f"scan{k}.{kind}")
    (folder / "covid" / ".hidden.png").write_text("not an image")
    (folder / "notes.md").write_text("not an image either")
    return pixels


def test_folder_of_images(tmp_path):
    pixels = write_images(tmp_path)
    data = read(tmp_path)
    assert data.names == [f"covid/scan{k}.png" for k in (1, 3)] + [
        f"healthy/scan{k}.png" for k in (0, 2)
    ]
    assert data.y.tolist() == ["covid"] * 2 + ["healthy"] * 2
    np.testing.assert_allclose(data.X[2], pixels[0] / 255, rtol=1e-6)
    np.testing.assert_allclose(read(tmp_path / "healthy" / "scan0.png").X, pixels[0] / 255, 1e-6)


def test_images_are_resized_and_grey(tmp_path):
    image = pytest.importorskip("PIL.Image")
    write_images(tmp_path, sizes=((5, 4), (6, 7)))
    with pytest.raises(DataFileError, match=r"its shape is \(5, 4\), .* Give a size"):
        read(tmp_path)
    image.new("RGB", (10, 8), (255, 255, 255)).save(tmp_path / "covid" / "white.png")
    image.fromarray(np.full((9, 9), 65535, np.uint16)).save(tmp_path / "covid" / "wide.png")
    data = read(tmp_path, size=(3, 2))
    assert data.X.shape == (4, 3, 2)
    np.testing.assert_allclose(data.X[data.names.index("covid/white.png")], 1)
    np.testing.assert_allclose(data.X[data.names.index("covid/wide.png")], 1)


def write_volumes(folder, ends=(".nii", ".nii.gz")):
    nibabel = pytest.importorskip("nibabel")
    folder.mkdir(exist_ok=True)
    for k in range(4):
        volume = nibabel.Nifti1Image(np.full((3, 2, 2), k, np.int16), np.eye(4))
        nibabel.save(volume, folder / f"p{k}{ends[k % 2]}")


def test_folder_of_volumes_with_responses_by_name(tmp_path):
    write_volumes(tmp_path / "scans")
    table = tmp_path / "patients.csv"
    table.write_text("file,age\np3,33\np0,30\nother,99\np1.nii.gz,31\np2,32\n")
    data = read(tmp_path / "scans", y=f"{table}:age", match="file")
    assert data.X.shape == (4, 3, 2, 2)
    np.testing.assert_array_equal(data.X[:, 0, 0, 0], range(4))
    np.testing.assert_array_equal(data.y, [30, 31, 32, 33])
    assert read(tmp_path / "scans").y is None
    assert read(tmp_path / "scans" / "p1.nii.gz").X.shape == (3, 2, 2)
    table.write_text("file,age\np3,33\n")
    with pytest.raises(DataFileError, match=r"'file' has no row for 'p0\.nii'; .* holds 'p3'"):
        read(tmp_path / "scans", y=f"{table}:age", match="file")
    with pytest.raises(DataFileError, match="no column 'id' to match; it has file, age"):
        read(tmp_path / "scans", y=f"{table}:age", match="id")
    with pytest.raises(DataFileError, match=r"\(3, 2, 2\), not \(2, 2\): only images are resized"):
        read(tmp_path / "scans", size=(2, 2))
    nibabel = pytest.importorskip("nibabel")
    (tmp_path / "slices").mkdir()
    nibabel.save(nibabel.Nifti1Image(np.ones((3, 2)), np.eye(4)), tmp_path / "slices" / "a.nii")
    assert read(tmp_path / "slices", size=(3, 2)).X.shape == (1, 3, 2)


def test_covariates_and_weights_are_matched_as_well(tmp_path):
    write_volumes(tmp_path / "scans")
    table = tmp_path / "patients.csv"
    rows = [f"p{k},{30 + k},{10 * k},{'mf'[k % 2]}\n" for k in (2, 0, 3, 1)]
    table.write_text("file,age,mass,sex\n" + "".join(rows))
    data = read(
        tmp_path / "scans",
        y=f"{table}:age",
        covariates=f"{table}:mass,age",
        weights=f"{table}:age",
        match="file",
    )
    np.testing.assert_array_equal(data.covariates, [[0, 30], [10, 31], [20, 32], [30, 33]])
    np.testing.assert_array_equal(data.weights, [30, 31, 32, 33])
    alone = read(tmp_path / "scans", covariates=f"{table}:mass", match="file")
    np.testing.assert_array_equal(alone.covariates, data.covariates[:, :1])
    with pytest.raises(DataFileError, match=r"patients\.csv:sex' holds 'm', not numbers: code it"):
        read(tmp_path / "scans", covariates=f"{table}:mass,sex", match="file")
    table.write_text(table.read_text() + "p1,99,99,m\n")
    with pytest.raises(DataFileError, match=r"'file' has two rows for 'p1\.nii\.gz'"):
        read(tmp_path / "scans", y=f"{table}:age", match="file")


def test_an_array_of_the_shape_itself_is_one_sample(tmp_path):
    np.save(tmp_path / "image.npy", X[0])
    np.testing.assert_array_equal(read(tmp_path / "image.npy", shape=(3, 4)).X, X[:1])


def test_responses_in_another_file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "t.csv").write_text("id,y\n" + "".join(f"s{k},{k}\n" for k in range(6)))
    np.testing.assert_array_equal(read(tmp_path / "X.npy", y=f"{tmp_path}/y.npy").y, Y)
    data = read(tmp_path / "X.npy", y=f"{tmp_path}/t.csv:y", names=f"{tmp_path}/t.csv:id")
    np.testing.assert_array_equal(data.y, Y)
    assert data.names[5] == "s5"
    with pytest.raises(DataFileError, match=r"it has several arrays or columns: write .*:NAME"):
        read(tmp_path / "X.npy", y=f"{tmp_path}/t.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": "Z"}, "it has no array 'Z': choose x from X, y, labels"),
        ({"y": "Z"}, "holds no 'Z', nor is there such a file; it holds X, y, labels"),
        ({"names": "X"}, "names must be 6, one per sample; 'X' has 72"),
        ({"shape": (5, 5)}, r"its samples have the shape \(3, 4\), not \(5, 5\)"),
        ({"match": "id"}, "match needs y, covariates or weights of another file"),
    ],
)
def test_what_is_not_there(tmp_path, options, message):
    write_npz(tmp_path / "data.npz")
    with pytest.raises(DataFileError, match=message):
        read(tmp_path / "data.npz", **options)


def test_which_array_is_not_guessed(tmp_path):
    np.savez(tmp_path / "data.npz", a=X, b=X)
    with pytest.raises(DataFileError, match="no array is called 'X': choose x from a, b"):
        read(tmp_path / "data.npz")
    np.savez(tmp_path / "flat.npz", X=X.reshape(6, 12))
    with pytest.raises(DataFileError, match=r"12 entries, which do not fill the shape \(5, -1\)"):
        read(tmp_path / "flat.npz", shape=(5, -1))


def test_other_files(tmp_path):
    (tmp_path / "data.xyz").write_text("?")
    with pytest.raises(DataFileError, match=r"told by the ends of their names; known are \.npy"):
        read(tmp_path / "data.xyz")
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        read(tmp_path / "none.npz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataFileError, match="neither it nor its subfolders hold images"):
        read(tmp_path / "folder")
    write_volumes(tmp_path / "folder")
    (tmp_path / "folder" / "a.png").write_bytes(b"")
    with pytest.raises(DataFileError, match="both images and NIfTI files"):
        read(tmp_path / "folder")


def test_gzip_volume_is_not_read_past_its_end(tmp_path):
    write_volumes(tmp_path)
    raw = gzip.decompress((tmp_path / "p1.nii.gz").read_bytes())
    (tmp_path / "p1.nii.gz").write_bytes(gzip.compress(raw[:-4]))
    with pytest.raises(DataFileError, match=f"cannot read '{tmp_path}{os.sep}p1.nii.gz'"):
        read(tmp_path)
