"""Files that do not belong to a run are left alone, and said so."""

import json

import pytest

from tauten.experiments.journal import Journal

HEADER = {"seed": 0, "cells": ["a", "b", "c", "d", "e"]}


def journal(tmp_path, header=HEADER):
    return Journal(tmp_path / "a.jsonl", header)


def refused(found, match):
    """Neither reading nor writing takes the file, and it stays as it is."""
    before = found.path.read_bytes()
    with pytest.raises(ValueError, match=match):
        found.read()
    with pytest.raises(ValueError, match=match), found.writing():
        pass
    assert found.path.read_bytes() == before


def test_lines_come_back_exactly(tmp_path):
    line = {"x": 0.1 + 0.2, "name": "ε"}
    with journal(tmp_path).writing() as append:
        append(line)
    with journal(tmp_path).writing() as append:
        append({"x": 1e-300})
    assert journal(tmp_path).read() == [line, {"x": 1e-300}]


def test_no_file_is_no_lines_and_is_not_made(tmp_path):
    assert journal(tmp_path).read() == []
    assert list(tmp_path.iterdir()) == []


def test_other_settings(tmp_path):
    with journal(tmp_path).writing() as append:
        append({"x": 1})
    refused(journal(tmp_path, HEADER | {"seed": 1}), "other settings .seed is 0, asked 1")
    refused(journal(tmp_path, HEADER | {"cells": ["a"]}), "cells is 5 of them, from 'a' to 'e'")


@pytest.mark.parametrize("text", ['{"format": 1, "se', "hello\n", "[1, 2]\n", "{}\n", "\n"])
def test_half_written_header_or_another_file(tmp_path, text):
    found = journal(tmp_path)
    found.path.write_text(text)
    refused(found, "not a results file, or its header is half-written")


def test_another_version(tmp_path):
    found = journal(tmp_path)
    found.path.write_text(json.dumps({"format": 99, **HEADER}) + "\n")
    refused(found, "another version")


def test_a_damaged_line_in_the_middle(tmp_path):
    found = journal(tmp_path)
    with found.writing() as append:
        append({"x": 1})
    with open(found.path, "a") as file:
        file.write('{"x": 2\n{"x": 3}\n')
    refused(found, "line 3 of .* is damaged")


def test_a_number_that_is_none_is_not_written(tmp_path):
    with journal(tmp_path).writing() as append:
        with pytest.raises(ValueError, match="Out of range float"):
            append({"x": float("nan")})
        append({"x": 1})
    assert journal(tmp_path).read() == [{"x": 1}]


@pytest.mark.parametrize("damage", [b"[" * 10**5, b"9" * 5000, b"\xff", b"null", b""])
def test_lines_made_to_break_the_parser(tmp_path, damage):
    with journal(tmp_path).writing() as append:
        append({"x": 1})
    path = journal(tmp_path).path
    path.write_bytes(path.read_bytes() + damage + b"\n")
    refused(journal(tmp_path), "line 3 of .* is damaged")
    path.write_bytes(damage + b"\n")
    refused(journal(tmp_path), "is not a results file")
