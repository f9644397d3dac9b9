"""What verbose=1 shows."""

import tauten as tt


def test_a_bar_with_what_matters(capsys):
    data = tt.datasets.make_model("I", 100, shape=(4, 3), rng=0)
    model = tt.TensorRegressor(1, verbose=1).fit(data.X, data.y)
    out, err = capsys.readouterr()
    last = model.result_.history[-1]
    assert out == ""
    assert f"loss {last.value:.6g}   change {last.change:.2e}   truncated" in err
    assert "iteration/s" in err or "s/iteration" in err
