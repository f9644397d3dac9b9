"""Same numbers on any number of jobs, after any number of kills; nothing lost, nothing repeated."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forks import forks, killed, needs_fork

sys.path.insert(0, str(Path(__file__).parent))  # for `import small`, here and in the workers
from small import EXPERIMENT, SETTINGS

from tauten.experiments import runner
from tauten.experiments.runner import results_file, run


def content(folder):
    """The header, and the outcome of every cell and replication: each must be there once."""
    lines = results_file(EXPERIMENT, SETTINGS, folder).path.read_text().splitlines()
    found = {}
    for line in map(json.loads, lines[1:]):
        for cell, methods in line["results"].items():
            for method, rows in methods.items():
                for replication, row in zip(line["replications"], rows, strict=True):
                    assert (cell, method, replication) not in found
                    found[cell, method, replication] = row
    return lines[0], found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run(EXPERIMENT, SETTINGS, folder)
    return folder


def test_every_cell_and_replication_is_done(undisturbed):
    _, found = content(undisturbed)
    assert len(found) == 9 * 12 * 2
    assert all(row is not None for (_, method, _), row in found.items() if method == "RGD")


def test_two_jobs_give_the_numbers_of_one(undisturbed, tmp_path):
    run(EXPERIMENT, SETTINGS, tmp_path, jobs=2)
    assert content(tmp_path) == content(undisturbed)


def test_a_file_cut_anywhere_is_completed(undisturbed, tmp_path, rng):
    path = results_file(EXPERIMENT, SETTINGS, undisturbed).path
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    for cut in rng.integers(header, len(whole), size=3):
        (tmp_path / path.name).write_bytes(whole[:cut])
        run(EXPERIMENT, SETTINGS, tmp_path)
        assert content(tmp_path) == content(undisturbed)


@pytest.mark.parametrize(
    "line", ['{"a": 1}', '{"replications": [0], "results": {"no": {"a": [0]}}}']
)
def test_lines_that_are_no_results_are_named(line, tmp_path):
    results = results_file(EXPERIMENT, SETTINGS, tmp_path)
    with results.journal.writing():
        pass
    with results.path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ValueError, match=r"line 2 of .* holds no results of this experiment"):
        results.read()


def test_more_replications_only_add(undisturbed, tmp_path):
    run(EXPERIMENT, replace(SETTINGS, replications=7), tmp_path)
    first = content(tmp_path)[1]
    run(EXPERIMENT, SETTINGS, tmp_path)
    assert first.items() <= content(tmp_path)[1].items()
    assert content(tmp_path) == content(undisturbed)


def test_what_is_done_is_not_done_again(undisturbed, monkeypatch):
    def never(*args):
        raise AssertionError("nothing is missing")

    monkeypatch.setattr(runner, "fit_group", never)
    results = run(EXPERIMENT, SETTINGS, undisturbed)
    assert not any(results.missing().values())


def test_progress_ends_at_the_total_and_tells_the_time_left(tmp_path):
    seen = []
    run(EXPERIMENT, SETTINGS, tmp_path, callback=seen.append)
    assert seen[-1].done == seen[-1].total == 3 * 12
    assert seen[-1].seconds_left == 0
    assert all(np.isfinite(p.seconds_left) and p.seconds_left > 0 for p in seen[:-1])


def test_a_second_process_is_turned_away(tmp_path):
    with results_file(EXPERIMENT, SETTINGS, tmp_path).journal.writing():
        before = content(tmp_path)
        with pytest.raises(BlockingIOError, match="another process is writing"):
            run(EXPERIMENT, SETTINGS, tmp_path)
        assert content(tmp_path) == before


@pytest.mark.slow
@forks
@needs_fork
def test_fifty_kills_at_random_moments(undisturbed, tmp_path, rng):
    """The same with one job, whose moments are those of the file; done runs are begun anew."""
    begin = time.perf_counter()
    run(EXPERIMENT, SETTINGS, tmp_path / "timed")
    took = time.perf_counter() - begin
    results, finished = results_file(EXPERIMENT, SETTINGS, tmp_path), 0
    for _ in range(50):
        killed(lambda: run(EXPERIMENT, SETTINGS, tmp_path), rng.uniform(0, took / 2))
        if not any(results.read().missing().values()):
            assert content(tmp_path) == content(undisturbed)
            results.path.unlink()
            finished += 1
    run(EXPERIMENT, SETTINGS, tmp_path)
    assert content(tmp_path) == content(undisturbed)
    assert finished > 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_ten_kills_lose_and_repeat_nothing(undisturbed, tmp_path, rng):
    script = Path(__file__).with_name("small.py")
    path = results_file(EXPERIMENT, SETTINGS, tmp_path).path
    kills = 0
    while True:
        command = [sys.executable, str(script), str(tmp_path), "2"]
        process = subprocess.Popen(command, start_new_session=True)
        size = path.stat().st_size if path.exists() else 0
        while kills < 10 and process.poll() is None:  # let it write something, then kill it
            time.sleep(float(rng.uniform(0, 0.05)))
            if path.exists() and path.stat().st_size > size + rng.integers(0, 4000):
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
                break
        if process.wait() == 0:
            break
    assert kills >= 3
    assert content(tmp_path) == content(undisturbed)
