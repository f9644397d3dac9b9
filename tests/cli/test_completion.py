"""Completion, by really completing in a shell."""

import os
import shutil
import subprocess

import pytest

from tauten.cli import main
from tauten.cli.completion import SCRIPTS

COMPLETE = """
source /dev/stdin
COMP_WORDS=("$@")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_tauten
printf '%s\\n' "${COMPREPLY[@]}"
complete -p tauten
"""


@pytest.fixture(scope="module")
def script():
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        assert main(["completion", "bash"]) == 0
    return out.getvalue()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            ["tauten", ""],
            {"fit", "predict", "inspect", "simulate", "reproduce", "demo", "--version"},
        ),
        (["tauten", "fi"], {"fit"}),
        (["tauten", "fit", "--ro"], {"--robust"}),
        (["tauten", "fit", "data.npz", "--robust", "tr"], {"truncate"}),
        (["tauten", "simulate", "--model", "I"], {"I", "II", "III", "IV"}),
        (["tauten", "completion", ""], set(SCRIPTS)),
        (["tauten", "predict", "model.npz", "-"], {"--output", "-o", "--help"}),
        (["tauten", "reproduce", "exp0"], {"exp01", "exp09"}),
    ],
)
def test_bash(script, line, expected):
    done = subprocess.run(
        ["bash", "-c", COMPLETE, *line[:1], *line],
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    *found, registered = done.stdout.splitlines()
    assert done.stderr == ""
    assert expected <= set(found)
    assert all(word.startswith(line[-1]) for word in found)
    assert registered == "complete -o default -F _tauten tauten"  # files, where nothing else fits


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("fit", "robust", "truncate", "reproduce", "exp01"):
        assert word in script
    if shutil.which(shell):  # pragma: no cover
        subprocess.run([shell, "-n", "/dev/stdin"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tauten ", "demo\tfit heavy-tailed data with and without robustness"),
        ("tauten fit --rob", "--robust\trobust gradient\n"),
        ("tauten fit --robust trunc", "truncate\trobust gradient\n"),
        ("tauten simulate --model IV", "IV\t"),
        ("tauten reproduce exp03", "exp03\n"),
    ],
)
def test_fish(line, expected, capsys, tmp_path):
    assert main(["completion", "fish"]) == 0
    (tmp_path / "tauten.fish").write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["fish", "-c", f"source tauten.fish; complete -C '{line}'"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert expected in done.stdout
    assert all(len(told) < 100 for told in done.stdout.splitlines()), "it fits on a line"
