"""Pages: escaping, tables, files; and how they behave in a real browser."""

import errno
import os
import stat

import matplotlib as mpl
import pytest

from tauten import _html
from tauten._files import write_whole

ROWS = [["b10", 2.5], ["b9", float("nan")], ["<script>alert(1)</script>", -3], ["Ä & b", 1e4]]


@pytest.fixture
def opened(browser, tmp_path):
    mpl.use("Agg")
    from matplotlib.figure import Figure

    with mpl.rc_context(_html.FIGURE_STYLE):
        fig = Figure(figsize=(3, 2))
        fig.subplots().plot([1, 2])
        picture = _html.figure(fig, 'A "line" & more', "caption")
    body = _html.table(["name", "size"], ROWS, "A table") + picture
    text = _html.page("<Title> & co", [("Part <b>", body)], lead="lead")
    browser.look()
    browser.open(_html.write(tmp_path / "page.html", text))
    return browser


def names(browser):
    return browser.run("[...document.querySelectorAll('tbody tr')].map(r => r.cells[0].innerText)")


def test_a_page_loads_nothing_and_complains_of_nothing(opened):
    assert opened.requests() == []
    assert opened.complaints() == []
    width, alt = opened.run("(i => [i.naturalWidth, i.alt])(document.images[0])")
    assert width > 100
    assert alt == 'A "line" & more'


def test_text_stays_text(opened):
    assert opened.run("document.title") == "<Title> & co"
    assert opened.run("document.querySelector('h2').innerText") == "Part <b>"
    assert names(opened) == [row[0] for row in ROWS]
    assert opened.run("document.scripts.length") == 1


def test_a_script_that_slipped_in_would_not_run(browser, tmp_path):
    evil = _html.Html("<script>window.ran = 1</script><img src='https://example.invalid/a.png'>")
    browser.open(_html.write(tmp_path / "evil.html", _html.page("t", [("s", evil)])))
    assert browser.run("window.ran === undefined")
    assert any("Content Security Policy" in str(c) for c in browser.complaints())


def test_a_table_sorts_by_click(opened):
    click = "document.querySelectorAll('th button')[{}].click()"
    sort = "[...document.querySelectorAll('thead th')].map(h => h.getAttribute('aria-sort'))"
    opened.run(click.format(1))
    assert names(opened) == [ROWS[2][0], "b10", "Ä & b", "b9"]  # a missing value last ...
    assert opened.run(sort) == [None, "ascending"]
    opened.run(click.format(1))
    assert names(opened) == ["Ä & b", "b10", ROWS[2][0], "b9"]  # ... both ways
    assert opened.run(sort) == [None, "descending"]
    opened.run(click.format(0))
    assert names(opened)[-2:] == ["b9", "b10"]  # numbers in names count as numbers
    assert opened.run(sort) == ["ascending", None]


@pytest.mark.parametrize(("key", "code"), [("Enter", 13), (" ", 32)])
def test_a_table_sorts_by_keyboard(opened, key, code):
    for _ in range(10):
        opened.press("Tab", 9)
        if opened.run("document.activeElement.innerText") == "size":
            break
    opened.press(key, code)
    assert names(opened)[0] == ROWS[2][0]


def test_the_scheme_and_a_narrow_window_are_followed(opened):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = opened.run(colour)
    opened.look(dark=True, width=390)
    assert opened.run(colour) != light
    assert opened.run("document.documentElement.scrollWidth") == 390


def test_a_figure_follows_the_scheme(opened, tmp_path):
    pictures = []
    for dark in (False, True):
        opened.look(dark=dark)
        opened.screenshot(tmp_path / "page.png")
        pictures.append(mpl.image.imread(tmp_path / "page.png")[..., :3])
    box = "(b => [b.x, b.y, b.width, b.height])(document.images[0].getBoundingClientRect())"
    x, y, width, height = map(int, opened.run(box))
    light, dark = (p[y : y + height, x : x + width] for p in pictures)
    assert light.min() < 0.2
    assert light[0, 0].min() > 0.9
    assert dark.max() > 0.8
    assert dark[0, 0].max() < 0.2


def test_the_same_figure_gives_the_same_page():
    from matplotlib.figure import Figure

    figures = [Figure() for _ in range(2)]
    for fig in figures:
        fig.subplots().plot([1, 2])
    first, second = (_html.figure(fig, "a line") for fig in figures)
    assert first == second


def test_plain_strings_are_escaped_when_added():
    assert _html.Html("<b>") + "<i>" == "<b>&lt;i&gt;"
    assert isinstance(_html.Html("<b>") + "<i>", _html.Html)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    write_whole(path, b"old")

    def fail(*args):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.html"]


def test_a_written_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    write_whole(tmp_path / "ours", b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "ours")]
    assert modes[0] == modes[1]


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"folder that exists.*nowhere"):
        _html.write(tmp_path / "nowhere" / "a.html", "")
    with pytest.raises(OSError, match=r"can be written to.*file"):
        _html.write(tmp_path / "file" / "a.html", "")
    with pytest.raises(IsADirectoryError, match="must name a file"):
        _html.write(tmp_path, "")
