"""Children of the test's own process, for tests of what happens in them or to them."""

import os
import pickle
import signal
import time

import pytest

# newer Pythons warn of what is tested here: a fork of a process that has threads
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def in_a_fork(work, seconds=30):
    """What `work` returns in a forked child, or a failure if it hangs there."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)  # a child that hangs is ended by the system
        try:
            os.write(there, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as file:
        answer = file.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hung or died"
    return pickle.loads(answer)


def killed(work, seconds):
    """Run `work` in a forked child over and over, and kill that without notice after a while."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                work()
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "the child ended by itself"
