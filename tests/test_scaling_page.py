"""The commands of docs/scaling.md: scheduler, workers and fit, each in a process of its own."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ports import free_port

PAGE = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_cluster_by_hand(tmp_path):
    port = free_port()
    (shell,) = re.findall(r"^```bash\n(.*?)^```", PAGE, re.M | re.S)
    scheduler, worker = shell.replace("8786", port).strip().splitlines()
    script = next(b for b in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S) if "dask" in b)
    script = script.replace("8786", port).replace("# from dist", "from dist")
    script = script.replace("# client =", "client =")
    (tmp_path / "fit.py").write_text(script, encoding="utf-8")
    python = [sys.executable, "-m", "dask"]
    begun = []
    try:
        for command in (f"{scheduler} --no-dashboard", f"{worker} --no-dashboard"):
            words = [*python, *shlex.split(command)[1:]]
            begun.append(subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL))
        found = subprocess.run(
            [sys.executable, "fit.py"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert found.stdout.strip() == "1.0"
        assert all(process.poll() is None for process in begun)
    finally:
        for process in reversed(begun):
            process.terminate()
            process.wait(30)
