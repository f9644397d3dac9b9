"""The command line: reads arguments and files, calls the library, prints. No numerics here."""

from .app import main

__all__ = ["main"]
