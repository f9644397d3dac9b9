"""The sweep: every path against the sum written out, and the compiled one against abuse."""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauten import TensorRegressor, kernels
from tauten.kernels import compiled, plain

needs_compiled = pytest.mark.skipif(compiled._sweep is None, reason="built without a compiler")
PATHS = [plain, pytest.param(compiled, marks=needs_compiled)]


def found(path, X, factors, *, core=None, **options):
    """What a path makes of a batch: projections, or with a core derivatives."""
    if core is None:
        return path.project(X, factors, **options)
    return [path.derivatives(X, factors, core, **options)]


def written_out(X, factors, *, core=None, center=None, scale=None, partials=True, beside=None):
    """The formulas of both, as one einsum each."""
    X = X.astype(float)
    X = X if center is None else X - center
    X = X if scale is None else X * scale.reshape(-1, *[1] * (X.ndim - 1))
    p = string.ascii_lowercase[: X.ndim - 1]
    r = string.ascii_uppercase[: X.ndim - 1]
    pairs = [a + b for a, b in zip(p, r, strict=True)]

    def projected(keep=None):
        others = [pair for k, pair in enumerate(pairs) if k != keep]
        out = "".join(p[k] if k == keep else r[k] for k in range(len(p)))
        matrices = [u for k, u in enumerate(factors) if k != keep]
        return np.einsum(",".join([f"z{p}", *others]) + f"->z{out}", X, *matrices), out

    arrays = [projected()[0]]
    for k in range(len(p)) if partials else ():
        part, modes = projected(k)
        if core is not None:
            part = np.einsum(f"z{modes},{r}->z{p[k]}{r[k]}", part, core)
        arrays.append(part)
    if core is None:
        return arrays
    arrays += [] if beside is None else [beside]
    return [np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1)]


@st.composite
def batches(draw):
    order = draw(st.integers(1, 5))
    shape = tuple(draw(st.integers(1, 9 if order < 4 else 3)) for _ in range(order))
    rank = tuple(draw(st.integers(1, min(p, 5))) for p in shape)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 35))
    options = {"center": rng.normal(size=shape), "scale": rng.uniform(size=n)}
    if draw(st.booleans()):
        options |= {"core": rng.normal(size=rank), "beside": rng.normal(size=(n, 2))}
    else:
        options["partials"] = draw(st.booleans())
    options = {key: value for key, value in options.items() if key == "core" or draw(st.booleans())}
    factors = [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
    return rng.normal(size=(n, *shape)), factors, options


def agree(mine, theirs, tol=1e-12):
    assert [m.shape for m in mine] == [t.shape for t in theirs]
    for m, t in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(m, t, rtol=0, atol=tol * np.abs(t).max(initial=1.0))


@pytest.mark.parametrize("path", PATHS)
@given(batch=batches())
def test_formulas(path, batch):
    X, factors, options = batch
    if path is plain or compiled.serves(X):
        agree(found(path, X, factors, **options), written_out(X, factors, **options))


@pytest.mark.parametrize("path", PATHS)
def test_tiles_of_every_size(path, rng):
    """Rows, columns and ranks around the sizes that the compiled loops are cut into."""
    for shape, rank in [
        ((3, 131), (3, 4)),
        ((130, 2), (7, 2)),
        ((9, 5, 17), (4, 5, 3)),
        ((2, 33, 8), (1, 6, 8)),
        ((5, 1, 1), (5, 1, 1)),
        ((6, 9, 3), (2, 4, 3)),
        ((4, 8, 2, 3), (3, 2, 1, 2)),
        ((2, 100), (2, 3)),
        ((100, 7), (3, 5)),
        ((23, 9, 41), (7, 1, 2)),
        ((6, 5, 7, 9), (1, 5, 4, 2)),
        ((5, 3000), (2, 3)),
        ((40, 1000), (2, 1)),
        ((37, 1700), (20, 3)),
        ((7, 9, 4), (6, 1, 1)),
        ((10, 70), (9, 2)),
        ((12, 40), (1, 7)),
        ((55, 300), (5, 4)),
        ((3, 17_000), (2, 2)),
        ((4, 5, 3), (0, 2, 2)),
        ((4, 5, 3), (2, 0, 2)),
        ((4, 5, 3), (2, 2, 0)),
    ]:
        factors = [rng.normal(size=pair) for pair in zip(shape, rank, strict=True)]
        X, core = rng.normal(size=(17, *shape)), rng.normal(size=rank)
        for options in ({}, {"core": core}, {"center": X[3]}, {"partials": False}):
            agree(found(path, X, factors, **options), written_out(X, factors, **options))
        single = [X.astype(np.float32), [u.astype(np.float32) for u in factors]]
        agree(path.project(*single), written_out(*single), tol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("path", PATHS)
def test_rows_of_every_length(path, rng, dtype):
    """The last vector of a row overlaps the one before; at large ranks rows are taken by parts."""
    factor, core = np.ones((7, 250), dtype), np.ones((250, 1), dtype)
    for length in range(280, 640):
        X = rng.normal(size=(5, 7, length)).astype(dtype)
        ones = np.ones((length, 1), dtype)
        first = path.derivatives(X, [factor, ones], core)[:, 0]
        expected = X.sum(axis=(1, 2), dtype=float)
        np.testing.assert_allclose(
            first, expected, rtol=0, atol=1e-3 if dtype == np.float32 else 1e-10
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("path", PATHS)
def test_rows_anywhere_in_memory(path, rng, dtype):
    """Vectors begin where lines of memory do, if all rows lie alike to them, as those of 640 do."""
    for length in (640, 642):
        numbers = rng.normal(size=5 * 3 * length + 32).astype(dtype)
        factors = [rng.normal(size=(p, r)).astype(dtype) for p, r in ((3, 2), (length, 3))]
        core = rng.normal(size=(2, 3)).astype(dtype)
        for first in range(33):
            X = numbers[first:][: 5 * 3 * length].reshape(5, 3, length)
            for options in ({}, {"core": core}, {"center": X[3]}, {"partials": False}):
                tol = 1e-4 if dtype == np.float32 else 1e-12
                agree(found(path, X, factors, **options), written_out(X, factors, **options), tol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("shape", [(3, 4), (5, 3, 7), (2, 131), (4, 5, 3, 2)])
def test_sums_in_the_same_read(shape, path, rng, dtype):
    """Of as many samples as blocks have and others, and of some that lie apart, backwards."""
    factors = [rng.normal(size=(p, 2)).astype(dtype) for p in shape]
    core = rng.normal(size=(2,) * len(shape)).astype(dtype)
    for n in (1, 8, 16, 37):
        numbers, score = rng.normal(size=(2 * n, *shape)).astype(dtype), rng.normal(size=n)
        options = {"center": numbers[0], "scale": rng.uniform(size=n), "beside": numbers[:n, 0]}
        options["beside"] = options["beside"].reshape(n, -1)
        for X in (numbers[:n], numbers[::-2]):
            rows, total = path.derivatives_and_sum(X, factors, core, score, **options)
            tol = 1e-4 if dtype == np.float32 else 1e-12
            agree([rows], written_out(X, factors, core=core, **options), tol)
            agree([total], [np.einsum("n,n...->...", score, X.astype(float))], tol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("path", PATHS)
def test_norms(path, rng, dtype):
    """Of samples of every length around those that the compiled loop is cut into."""
    for length in (*range(1, 300), 2500, 10_000):
        X = rng.normal(size=(5, length)).astype(dtype)
        center = rng.normal(size=length).astype(dtype)
        for middle in (None, center):
            rows = X.astype(float) - (0 if middle is None else middle.astype(float))
            mine = path.norms(X, middle)
            assert mine.dtype == dtype
            tol = 1e-5 if dtype == np.float32 else 1e-13
            np.testing.assert_allclose(mine, [np.sqrt(row @ row) for row in rows], rtol=tol)


@needs_compiled
def test_norms_are_compiled_where_samples_are_in_one_piece(rng, monkeypatch):
    X = rng.normal(size=(9, 3, 4))
    expected = np.sqrt(((X - X[0]) ** 2).sum(axis=(1, 2)))
    monkeypatch.setattr(plain, "norms", lambda X, center: None)
    np.testing.assert_allclose(kernels.norms(X, X[0]), expected)
    np.testing.assert_allclose(kernels.norms(X[::-2], X[0]), expected[::-2])
    assert kernels.norms(np.asfortranarray(X)) is None  # all of it would be copied


def scaled(array, factor=8.0):
    return np.round(array * factor)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.int32),
        lambda X: X > 0,
        lambda X: X.astype(">f8"),
        np.asfortranarray,
        lambda X: X[::-2],
        lambda X: X[::3],
        lambda X: X[:, ::-1],
    ],
    ids=[
        "float32",
        "float16",
        "int32",
        "bool",
        "big-endian",
        "fortran",
        "backwards",
        "every third",
        "reversed",
    ],
)
def test_types_and_layouts(change, rng):
    X, factors = change(scaled(rng.normal(size=(30, 4, 5, 6)))), [np.eye(p, 2) for p in (4, 5, 6)]
    core = np.ones((2, 2, 2))
    agree(found(kernels, X, factors, core=core), written_out(X, factors, core=core))
    expected = np.sqrt((X.astype(float) ** 2).sum(axis=(1, 2, 3)))
    tol = 1e-2 if X.dtype == np.float16 else 1e-6
    if X.dtype != bool:  # which numpy does not multiply
        np.testing.assert_allclose(kernels.norms(X), expected, rtol=tol)


def test_single_precision_stays_single(rng):
    X = rng.normal(size=(20, 6, 7)).astype(np.float32)
    factors = [rng.normal(size=(p, 2)).astype(np.float32) for p in (6, 7)]
    for options in ({}, {"core": np.eye(2, dtype=np.float32), "beside": X[:, 0, :1]}):
        mine = found(kernels, X, factors, **options)
        assert {m.dtype for m in mine} == {np.dtype(np.float32)}
        agree(mine, written_out(X, factors, **options), tol=1e-5)


def test_read_only_input(rng):
    X, factors = rng.normal(size=(9, 3, 4)), [np.eye(3, 2), np.eye(4, 2)]
    X.setflags(write=False)
    assert kernels.project(X, factors)[0].shape == (9, 2, 2)


@needs_compiled
def test_the_compiled_path_is_taken(rng, monkeypatch):
    X, factors = rng.normal(size=(9, 3, 4)), [np.eye(3, 2), np.eye(4, 2)]
    monkeypatch.setattr(plain, "project", None)
    kernels.project(X, factors)
    assert kernels.in_use().startswith("compiled, ")
    with pytest.raises(TypeError):
        kernels.project(X[:2], factors)  # too few samples


def test_without_the_extension_only_slower(rng, monkeypatch):
    X = rng.normal(size=(120, 5, 4, 3))
    y = X[:, 0, 0, 0] - X[:, 1, 0, 0] + rng.standard_t(2, size=120)
    fast = TensorRegressor(rank=1).fit(X, y)
    monkeypatch.setattr(compiled, "_sweep", None)
    slow = TensorRegressor(rank=1).fit(X, y)
    assert kernels.in_use() == "plain"
    np.testing.assert_allclose(fast.coef_, slow.coef_, rtol=1e-8, atol=1e-10)


@needs_compiled
@pytest.mark.parametrize(
    "arguments",
    [
        lambda X, u, out: (X, u[:1], None, None, None, True, out),
        lambda X, u, out: (X, u[::-1], None, None, None, True, out),
        lambda X, u, out: (X.astype(np.float32), u, None, None, None, True, out),
        lambda X, u, out: (X.astype(int), u, None, None, None, True, out),
        lambda X, u, out: (X, u, np.ones((2, 3)), None, None, True, out),
        lambda X, u, out: (X, u, None, np.ones(5), None, True, out),
        lambda X, u, out: (X, u, None, None, np.ones(8), True, out),
        lambda X, u, out: (X, u, None, None, None, False, out),
        lambda X, u, out: (X, u, None, None, None, True, out[:17]),
        lambda X, u, out: (X, u, None, None, None, True, np.asfortranarray(out)),
        lambda X, u, out: (X, u, None, None, None, True, out.astype(np.float32)),
        lambda X, u, out: (X[:, 0], u[1:], None, None, None, True, out),
        lambda X, u, out: (X, u, None, None, None, True, out, np.ones(8), np.ones((3, 4))),
        lambda X, u, out: (X, u, None, None, None, True, out, np.ones(9), np.ones((3, 3))),
        lambda X, u, out: (X, u, None, None, None, True, out, np.ones(9), np.ones((3, 4), "f")),
        lambda X, u, out: (X, u, None, None, None, True, out, np.ones(9, "f"), np.ones((3, 4))),
    ],
)
def test_wrong_sizes_never_reach_the_loops(arguments, rng):
    X, factors = rng.normal(size=(9, 3, 4)), (np.ones((3, 2)), np.ones((4, 2)))
    out = np.zeros((4 + 6 + 8, 9))  # of what lies in memory, singles may overflow
    with pytest.raises((ValueError, BufferError)):
        compiled._sweep.sweep(*arguments(X, factors, out))


@needs_compiled
@pytest.mark.parametrize(
    "arguments",
    [
        lambda X, c, out: (X[:, :, ::2], None, out),
        lambda X, c, out: (X[:, 0, 0], None, out),
        lambda X, c, out: (X.astype(int), None, out),
        lambda X, c, out: (X, c[:2], out),
        lambda X, c, out: (X, c.astype(np.float32), out),
        lambda X, c, out: (X, None, out[:8]),
        lambda X, c, out: (X, None, out.astype(np.float32)),
        lambda X, c, out: (X, None),
    ],
)
def test_wrong_sizes_make_no_norms(arguments, rng):
    X = rng.normal(size=(9, 3, 4))
    with pytest.raises((TypeError, ValueError, BufferError)):
        compiled._sweep.squares(*arguments(X, X[0], np.empty(9)))


def test_arrays_that_start_at_any_byte(rng):
    """As they come over a network."""

    def moved(array):
        raw = np.empty(array.nbytes + 1, np.uint8)[1:]
        raw[:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw.view(array.dtype).reshape(array.shape)

    X, factors = rng.normal(size=(8, 3, 4)), [rng.normal(size=(p, 2)) for p in (3, 4)]
    expected = kernels.project(X, factors)
    for x, u in ((moved(X), factors), (X, [moved(f) for f in factors])):
        for mine, theirs in zip(kernels.project(x, u), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@needs_compiled
def test_many_columns_are_left_to_blas(rng, monkeypatch):
    X, factors = rng.normal(size=(9, 4, 5, 6)), [rng.normal(size=(p, 4)) for p in (4, 5, 6)]
    expected = compiled.project(X, factors)
    monkeypatch.setattr(compiled, "project", None)
    agree(kernels.project(X, factors), expected)
    with pytest.raises(TypeError):
        kernels.project(X, factors, partials=False)  # no sums of rows are wanted: few columns
