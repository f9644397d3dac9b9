"""A short run of the fuzzer: `make fuzz` runs it for as long as one likes."""

import pytest

import fuzz


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_every_parser_answers_or_raises_what_it_promises(name, tmp_path):
    count, wrong = fuzz.run(name, tmp_path, seconds=60, most=300)
    assert count == 300
    assert not wrong, next(iter(wrong.values()))


def test_the_fuzzer_sees_what_is_not_promised():
    class Broken:
        promised = (ValueError,)

        def __call__(self, rng):
            raise KeyError("not promised")

    assert "not promised" in fuzz.attack(Broken(), 0)
    Broken.promised = (KeyError,)
    assert fuzz.attack(Broken(), 0) is None
