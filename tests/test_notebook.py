"""A notebook: a fit, its HTML representation, a picture."""

import pytest

CELLS = [
    "import numpy as np\nimport tauten as tt",
    """rng = np.random.default_rng(0)
X = rng.normal(size=(120, 5, 4))
y = X[:, :2].sum(axis=(1, 2)) + rng.standard_t(1.5, size=120)
model = tt.TensorRegressor(rank=1).fit(X, y)
model""",
    "%matplotlib inline\ntt.plot.coefficients(model);",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the machinery of notebooks warns of its own affairs
def test_fit_and_picture_show_in_a_notebook(tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the notebook's own is what is tried
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    _, fit, picture = notebook.cells
    shown = fit.outputs[-1]["data"]["text/html"]
    assert "TensorRegressor" in shown
    assert "sk-estimator" in shown, "scikit-learn's diagram"
    assert len(picture.outputs[-1]["data"]["image/png"]) > 5000
    assert not [o for cell in notebook.cells for o in cell.outputs if o.get("name") == "stderr"]
