"""Damaged, foreign and malicious files give a ModelFileError, and nothing in them is run."""

import builtins
import io
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tauten as tt
from tauten._archive import pack, seal, unpack
from tauten.io import ModelFileError
from tauten.io.models import TEXT

FORGED = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def model_bytes(path):
    data = tt.datasets.make_model("I", 40, shape=(3, 2), rng=0)
    model = tt.TensorRegressor(1, robust="truncate:tau=2", solver="newton:n_iter=5,tol=0")
    tt.save(model.fit(data.X, data.y), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return model_bytes(tmp_path_factory.mktemp("good") / "model.npz")


@pytest.fixture
def load(tmp_path):
    def load(data):
        (tmp_path / "model.npz").write_bytes(data)
        return tt.load(tmp_path / "model.npz")

    return load


def refused(load, data, message=""):
    with pytest.raises(ModelFileError, match=f"(?s)^cannot load .*{message}") as caught:
        load(data)
    assert isinstance(caught.value, ValueError)


def refused_in_little_memory(load, data, message=""):
    tracemalloc.start()
    try:
        refused(load, data, message)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def archive(members, compression=zipfile.ZIP_STORED):
    """A sealed archive of any members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
        file.comment = b"0" * 64
    return seal(buffer.getvalue())


def document(model, **others):
    return json.dumps({"format": 1, "tauten": "0.1.0", "model": model, **others})


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


# ------------------------------------------------- damage


def test_every_flipped_byte_is_seen(good, load):
    for position in range(0, len(good), 7):
        refused(load, good[:position] + bytes([good[position] ^ 0x20]) + good[position + 1 :])


def test_every_kind_of_region_is_among_them(good):
    """Headers, text, arrays, directory, comment: each is longer than the step above."""
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        assert min(member.file_size for member in file.infolist()) > 7
    assert len(good) > 5000


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_truncated(good, load, share):
    refused(load, good[: int(share * len(good))])
    refused(load, good[:-1])


def test_grown(good, load):
    refused(load, good + b"\0", "checksum")


# ------------------------------------------------- other kinds of files


class Bomb:
    def __reduce__(self):
        return exec, ("import builtins; builtins.bombed = True",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"\x93NUMPY",
        npy(np.ones(3)),
        pickle.dumps({"a": 1}),
        pickle.dumps(Bomb()),
        b"PK\x05\x06" + bytes(18),
        b"{}",
        os.urandom(1000),
    ],
    ids=["empty", "text", "magic", "npy", "pickle", "bomb", "empty zip", "json", "noise"],
)
def test_files_of_other_kinds(data, load):
    refused(load, data, "not a file written by")


def test_an_archive_of_arrays_is_no_model(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.ones(3))
    with pytest.raises(ModelFileError, match=r"not written by tauten"):
        tt.load(tmp_path / "data.npz")


# ------------------------------------------------- forged seals


def test_pickles_are_not_run(load):
    pickled = npy(np.array([Bomb()], dtype=object), allow_pickle=True)
    refused(load, archive([("model.json", document({"$": "array", "index": 0})),
                           ("array_0.npy", pickled)]), "no use for")  # fmt: skip
    assert not hasattr(builtins, "bombed")


def header(shape, dtype="<f8"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        header((10**12,)),
        header((10**6, 10**6)) + bytes(800),
        header((-1,)) + bytes(8),
        header((2**62, 4)),
        header((10**9,), "<U0"),
        header((3,), "|O") + bytes(24),
        header((3,), "|V1000000000"),
        header("9" * 5000),
        header((10**9,), "<c16"),
        b"\x93NUMPY\x03\x00" + bytes(8),
        b"",
    ],
    ids=["long", "square", "negative", "overflow", "empty words", "objects", "void", "digits",
         "complex", "layout", "empty"],
)  # fmt: skip
def test_headers_that_promise_too_much(content, load):
    data = archive([("model.json", document({"$": "array", "index": 0})), ("array_0.npy", content)])
    refused_in_little_memory(load, data)


def test_zip_bombs(load):
    data = archive([("model.json", b" " * 10**8)], zipfile.ZIP_DEFLATED)
    assert len(data) < 10**6
    refused_in_little_memory(load, data, "compressed")


def test_members_that_share_their_bytes(load, good):
    """A directory that lists one member many times reads more than the file holds."""
    data = bytearray(archive([("model.json", document(1)), ("array_0.npy", bytes(10**5))]))
    end = data.rindex(b"PK\x05\x06")
    start = int.from_bytes(data[end + 16 : end + 20], "little")
    entry = data[data.index(b"PK\x01\x02", start + 1) : end]
    more = [bytes(entry).replace(b"array_0", b"array_%d" % k) for k in range(1, 9)]
    data[end:end] = b"".join(more)
    end = data.rindex(b"PK\x05\x06")
    data[end + 8 : end + 12] = (10).to_bytes(2, "little") * 2
    data[end + 12 : end + 16] = (end - start).to_bytes(4, "little")
    refused(load, seal(bytes(data)), "larger than the file")


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        "array_1.npy",
        "array_0.npy/../x",
        "extra.txt",
        "model.json",
        "a\0b",
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_a_model_does_not_have(name, load, good, tmp_path):
    text, arrays = unpack(TEXT, good)
    contents = [("model.json", text), *((f"array_{k}.npy", npy(a)) for k, a in enumerate(arrays))]
    if name == "array_1.npy":  # one too few in the middle
        contents = [c for c in contents if c[0] != name]
    else:
        contents.append((name, b"content"))
    refused(load, archive(contents), "not model.json and arrays")
    assert os.listdir(tmp_path) == ["model.npz"]


def test_text_must_come_first_and_be_there(load):
    refused(load, archive([("array_0.npy", npy(np.ones(2)))]), "not model.json and arrays")
    refused(load, archive([]))


def test_newer_formats(load):
    text = document(None, format=tt.io.FORMAT + 1, tauten="9.0")
    refused(load, pack(TEXT, text, []), r"format 2, from tauten 9\.0.*Upgrade")


TREES = {
    "a number": 3,
    "nothing": None,
    "a list": [1, 2],
    "an array": {"$": "array", "index": 0},
    "no such array": {"$": "array", "index": 7},
    "unknown class": {"$": "os.system", "params": {}, "state": {}},
    "unknown estimator": {"$": "LinearRegression", "params": {}, "state": {}},
    "private class": {"$": "_TensorGLM", "params": {}, "state": {}},
    "unhashable": {"$": ["TensorPCA"]},
    "no kind": {"params": {}},
    "unknown parameter": {"$": "TensorPCA", "params": {"evil": 1}, "state": {}},
    "method": {"$": "TensorScaler", "params": {}, "state": {"fit": 1}},
    "dunder": {"$": "TensorScaler", "params": {}, "state": {"__class__": 1}},
    "dunder reduce": {"$": "TensorScaler", "params": {}, "state": {"__reduce__": "os"}},
    "strange name": {"$": "TensorScaler", "params": {}, "state": {"evil": 1}},
    "private method": {"$": "TensorScaler", "params": {}, "state": {"_learn": 1}},
    "half a fit": {"$": "TensorPCA", "params": {}, "state": {"tucker_": 3}},
    "fit without parts": {"$": "TensorRegressor", "params": {}, "state": {"n_iter_": 3}},
    "loss": {"$": "Loss", "name": "squared", "params": {}, "state": {}},
    "unknown loss": {
        "$": "TensorRegressor", "state": {},
        "params": {"loss": {"$": "Loss", "name": "evil", "params": {}, "state": {}}},
    },
    "tucker": {"$": "Tucker", "fields": {"core": 1, "factors": []}},
    "tucker that does not fit": {
        "$": "Tucker",
        "fields": {"core": {"$": "array", "index": 0}, "factors": [{"$": "array", "index": 0}]},
    },
    "generator": {
        "$": "TensorPCA", "state": {},
        "params": {"random_state": {"$": "Generator", "state": {
            "$": "dict", "items": [["bit_generator", "BitGenerator"]]}}},
    },
    "generator state": {
        "$": "TensorPCA", "state": {},
        "params": {"random_state": {"$": "Generator", "state": {
            "$": "dict", "items": [["bit_generator", "PCG64"], ["state", 3]]}}},
    },
    "float": {"$": "TensorPCA", "params": {"rank": {"$": "float", "value": "1"}}, "state": {}},
}  # fmt: skip


@pytest.mark.parametrize("tree", TREES)
def test_trees_that_are_no_model(tree, load):
    refused(load, pack(TEXT, document(TREES[tree]), [np.ones(3)]))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", "[" * 10**5, '{"format": 1}', '{"format": true, "model": 1}',
     '{"format": "1"}', '{"format": NaN}', '{"format": 1, "model": Infinity}',
     '{"format": 1, "model": ' + "9" * 5000 + "}", '{"format": 0}'],
)  # fmt: skip
def test_text_that_is_no_document(text, load):
    refused(load, pack(TEXT, text, []))


# ------------------------------------------------- fuzz


@FORGED
@given(data=st.data())
def test_forged_bytes_load_or_are_refused(data, good, load):
    """Bytes changed anywhere and sealed again: no other error, and little memory."""
    forged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(good) - 65))
        forged[position] = data.draw(st.integers(0, 255))
    try:
        model = load(seal(bytes(forged)))
    except ModelFileError:
        return
    assert isinstance(model, tt.TensorRegressor)


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
NAMES = st.sampled_from(
    ["$", "params", "state", "fields", "index", "items", "name", "value", "values", "labels",
     "rank", "core", "factors", "tucker_", "coef_", "__class__", "fit", "robust", "dims", "coords"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["TensorPCA", "TensorRegressor", "TensorScaler", "Tucker", "Affine", "Labels", "Result", "Loss",
     "Robustifier", "Solver", "array", "words", "tuple", "dict", "float", "labelled", "Generator"]
)  # fmt: skip
RANDOM = st.recursive(
    LEAVES | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=4)
        | st.fixed_dictionaries({"$": WORDS, "params": st.just({}), "state": inner, "index": inner})
    ),
    max_leaves=12,
)


@FORGED
@given(tree=RANDOM)
def test_random_trees_load_or_are_refused(tree, load):
    try:
        found = load(pack(TEXT, document(tree), [np.ones((2, 1))]))
    except ModelFileError:
        return
    assert type(found).__module__.startswith("tauten.")
