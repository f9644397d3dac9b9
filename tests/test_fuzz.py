"""A short run of the fuzzer: `make fuzz` runs it for as long as one likes."""

import os
import signal
import time

import pytest

pytest.importorskip("resource", reason="no limits on this system")
import fuzz

INPUTS = 100


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_every_parser_answers_or_raises_what_it_promises(name, tmp_path):
    count, wrong = fuzz.run(name, tmp_path, seconds=60, most=INPUTS)
    assert count == INPUTS
    assert not wrong, next(iter(wrong.values()))


def test_the_fuzzer_sees_what_is_not_promised():
    class Broken:
        promised = (ValueError,)

        def __call__(self, rng):
            raise KeyError("not promised")

    assert "not promised" in fuzz.attack(Broken(), 0)
    Broken.promised = (KeyError,)
    assert fuzz.attack(Broken(), 0) is None


class Dying:
    """Two inputs that a process does not survive, one that is too slow, and one that is too big."""

    promised = (ValueError,)

    def __init__(self, folder):
        self.kept = []

    def __call__(self, rng):
        kind = self.kinds[rng.bit_generator.seed_seq.entropy]
        if kind == "die":
            os.kill(os.getpid(), signal.SIGTERM)
        if kind == "hang":
            time.sleep(60)
        if kind == "grow":
            self.kept.append(bytearray(fuzz.MEMORY + 2**24))


def test_the_fuzzer_outlives_what_it_finds(monkeypatch):
    Dying.kinds = ["", "die", "", "hang", "grow", "", "die"]
    monkeypatch.setitem(fuzz.TARGETS, "dying", Dying)
    monkeypatch.setattr(fuzz, "HANGING", 1)
    count, wrong = fuzz.guarded("dying", seconds=60, most=7)
    assert count == 7
    assert sorted(wrong) == [1, 3, 4, 6]
    assert wrong[1] == "the process ended with -15"
    assert wrong[3] == "the process ended with -9"
    assert wrong[4].startswith("needs")
