"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

Run by `make test-oldest`, in an environment that has nothing installed yet.
"""

import re
import tomllib
from pathlib import Path


def oldest(extras):
    """Lower bounds of the dependencies and of some extras, each as ``name==version``."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    requirements = list(project["dependencies"])
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    bounds = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line) for line in requirements)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


# Of what ours depend on in turn: newer ones warn of names that the oldest matplotlib uses.
OTHERS = ["pyparsing<3.3"]

if __name__ == "__main__":
    print("\n".join([*oldest(["io", "plot", "test"]), *OTHERS]))
