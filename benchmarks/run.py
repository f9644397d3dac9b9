"""Run every benchmark at a small size: ``make bench``."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

for script in sorted(HERE.glob("*.py")):
    if script.name != Path(__file__).name:
        print(f"== {script.name}", flush=True)
        subprocess.run([sys.executable, str(script), "--seeds", "2"], check=True, cwd=HERE.parent)
