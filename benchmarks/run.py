"""Run every benchmark at a small size: ``make bench``."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

COMMANDS = [
    ["accuracy.py", "--seeds", "2"],
    ["classes_and_pca.py", "--seeds", "2"],
    ["speed.py", "--seconds", "1"],
]

for script, *options in COMMANDS:
    print(f"== {script}", flush=True)
    subprocess.run([sys.executable, str(HERE / script), *options], check=True, cwd=HERE.parent)
