"""A first fit with nothing but what `pip install tauten` brings; run by `make dist`."""

import sys
import tempfile
from importlib.resources import files
from pathlib import Path


def main():
    import tauten as tt

    assert Path(sys.prefix) in Path(tt.__file__).parents, "not the installed package"
    assert (files(tt) / "py.typed").is_file()
    data = tt.datasets.make_model("I", 300, noise="t:1.5", rng=0)
    model = tt.TensorRegressor(1).fit(data.X, data.y)
    assert tt.metrics.relative_error(model.coef_, data.truth) < 0.3
    with tempfile.TemporaryDirectory() as folder:
        tt.save(model, Path(folder) / "model.npz")
        again = tt.load(Path(folder) / "model.npz")
    assert (again.predict(data.X) == model.predict(data.X)).all()
    tt.show_versions()


if __name__ == "__main__":
    main()
