"""The demo of the command line, `tauten demo`, as a script: see tauten.demo for what it does."""

import sys

from tauten.cli import main

sys.exit(main(["demo", *sys.argv[1:]]))
