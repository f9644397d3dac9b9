"""Broken input for every parser, as fast as it goes: `make fuzz`.

Each target of `fuzz_targets` makes an input from a random generator and gives it to the library,
which answers or raises what it promises to. Anything else is a failure, printed with its seed:
other errors, inputs that take long or need much memory, and those that end the process, a child.

    python tests/fuzz.py --seconds 60 --seed 0 models zarr
"""

import argparse
import logging
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from fuzz_targets import TARGETS

SLOW = 1.0  # seconds of the processor for an input
HANGING = 60  # looks at a child, a second apart, that has not moved on
MEMORY = 2**28  # bytes that an input may add to the most that was ever in use
ADDRESSES = 2**34  # bytes: what asks for more is a failure of the system's, not of the machine's


def attack(target, seed):
    """Give one input; return what went wrong, or None."""
    begin = time.process_time()
    try:
        target(np.random.default_rng(seed))
    except target.promised:
        pass
    except Exception:
        return traceback.format_exc()
    took = time.process_time() - begin
    return f"took {took:.1f} s" if took > SLOW else None


def run(name, folder, *, seconds, seed=0, most=sys.maxsize, tell=lambda at, failure: None):
    """Attack one target for a while; return the number of inputs and what went wrong, by seed.

    What is done is told as it goes, for those who wait for a process that may die of it.
    """
    target, count, wrong = TARGETS[name](folder), 0, {}
    largest = peak() + MEMORY
    logging.disable()  # nibabel's word on each header
    end = time.monotonic() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # readers of others may have doubts of their own
        while count < most and time.monotonic() < end:
            at = seed + count
            tell(at, None)
            failure = attack(target, at)
            if peak() > largest:
                failure, largest = f"needs {peak() / 1e6:.0f} MB", peak() + MEMORY
            if failure is not None:
                wrong[at] = failure
                tell(at, failure)
            count += 1
    return count, wrong


def peak():
    """The most bytes of memory that this process ever had in use."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def child(name, folder, at, told, limits):
    """Attack in a process of its own; `at` is the seed, `told` takes the failures."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    def tell(seed, failure):
        at.value = seed
        if failure is not None:
            told.put((seed, failure))

    run(name, folder, seed=at.value, tell=tell, **limits)
    at.value += 1


def guarded(name, *, seconds, seed=0, most=sys.maxsize):
    """Attack in children, each begun where the one before it died; return as `run` does."""
    fork, wrong, last = multiprocessing.get_context("fork"), {}, seed + most
    end, first = time.monotonic() + seconds, seed
    while seed < last and (left := end - time.monotonic()) > 0:
        limits = {"seconds": left, "most": last - seed}
        at, told = fork.Value("q", seed), fork.SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            process = fork.Process(target=child, args=(name, Path(folder), at, told, limits))
            process.start()
            wait(process, at)
        while not told.empty():
            wrong.update([told.get()])
        if process.exitcode:
            wrong[at.value] = f"the process ended with {process.exitcode}"
        seed = at.value + (process.exitcode != 0)
    return seed - first, wrong


def wait(process, at):
    """Wait for a child, and end it when one input takes too long.

    Looks are counted, and not seconds: where all are made to wait, none of them is to blame.
    """
    last, looks = at.value, 0
    while process.is_alive():
        process.join(1)
        last, looks = at.value, looks + 1 if at.value == last else 0
        if looks > HANGING:
            process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all by default")
    parser.add_argument("--seconds", type=float, default=10, help="at most, for each target")
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="at most, for each target")
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    options, failures = parser.parse_args(), 0
    for name in options.targets or TARGETS:
        limits = {"seconds": options.seconds, "most": options.inputs}
        count, wrong = guarded(name, seed=options.seed, **limits)
        print(f"{name:11} {count:9d} inputs, {len(wrong)} failures", flush=True)
        for seed, failure in list(wrong.items())[:5]:
            print(f"seed {seed}:\n{failure}")
        failures += len(wrong)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
