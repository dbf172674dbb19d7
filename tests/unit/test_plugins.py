"""Names become objects, and a wrong name is told the right ones."""

import sys

import pytest

import callmark
from callmark.calls.formats import FORMATS
from callmark.errors import PluginError, UsageError
from callmark.plugins import (
    add_plugins,
    add_runner,
    find_runner,
    plugin_behind,
    plugin_scope,
    rows_of,
    runner_mark,
    runner_names,
    with_formats,
)
from callmark.probe.fidelity import read_answer
from callmark.probe.records import WrittenAnswer
from callmark.probe.spec import ToolUseCase
from callmark.runners.replay import open_replay


def test_built_in_runners_are_found_by_name():
    assert find_runner("replay") is open_replay
    assert "replay" in runner_names()


def test_a34_an_unknown_runner_is_refused_with_the_known_names():
    with pytest.raises(UsageError, match=r"--runner: there is no 'repaly'; there is: .*replay"):
        find_runner("repaly")


def test_runners_of_other_packages_are_found_by_their_entry_points(tmp_path, monkeypatch):
    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[callmark.runners]\nmine = other_runner:make\nbroken = other_runner:absent\n"
    )
    (tmp_path / "other_runner.py").write_text("def make(options): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_runner("mine").__module__ == "other_runner"
    assert "mine" in runner_names()
    with pytest.raises(UsageError, match="'broken' of other cannot be loaded"):
        find_runner("broken")


SHOUT = """
from callmark.calls.attempts import ToolCall
from callmark.calls.formats import Format, TextBlock

def read(reading, start, mark_end):
    end = reading.text.find("!", mark_end)
    if end < 0:
        return None
    raw = reading.text[start : end + 1]
    return TextBlock(end + 1, (ToolCall(reading.text[mark_end:end], {}, raw, "shout"),))

SHOUT = Format("shout", "CALL ", r"\\bCALL ", read)
BOTH = (SHOUT, Format("shout", "DO ", r"\\bDO ", read))
WRONG = "no row"
OTHER = [SHOUT._replace(name="whisper")]
PATTERN = SHOUT._replace(opening="(")
"""


@pytest.fixture
def offered_formats(tmp_path, monkeypatch):
    """Installs a package with these entry points."""

    def install(**points):
        package = tmp_path / "loud-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
        lines = [f"{name} = loud_formats:{value}\n" for name, value in points.items()]
        (package / "entry_points.txt").write_text("[callmark.formats]\n" + "".join(lines))
        (tmp_path / "loud_formats.py").write_text(SHOUT)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "loud_formats", raising=False)

    return install


@pytest.mark.parametrize(("attribute", "rows"), [("SHOUT", 1), ("BOTH", 2)])
def test_formats_of_other_packages_are_further_rows(offered_formats, attribute, rows):
    offered_formats(shout=attribute)
    table = with_formats(FORMATS)
    assert table[: len(FORMATS)] == FORMATS
    assert [row.name for row in table[len(FORMATS) :]] == ["shout"] * rows
    (call,) = callmark.parse_tool_calls("Now CALL f! and so on")
    assert (call["name"], call["format"], call["status"]) == ("f", "shout", "ok")
    assert callmark.parse_tool_calls("Now CALL f!", format="hermes") == []
    (call,) = callmark.parse_tool_calls("Now CALL f!", format="shout")
    assert call["raw"] == "CALL f!"


def test_a_probe_reads_the_formats_of_other_packages(offered_formats):
    case = ToolUseCase(prompt="p", tool_spec={"name": "f"}, gold_tool_name="f")
    assert not read_answer(WrittenAnswer("Now CALL f!"), case, "full").valid
    offered_formats(shout="SHOUT")
    assert read_answer(WrittenAnswer("Now CALL f!"), case, "full").valid


@pytest.mark.parametrize(
    ("name", "attribute", "message"),
    [
        ("shout", "ABSENT", "cannot be loaded"),
        ("shout", "WRONG", "is no Format of this name"),
        ("shout", "OTHER", "is no Format of this name"),
        ("shout", "PATTERN", "opening: missing"),
        ("hermes", "SHOUT", "there is a format of this name already"),
    ],
)
def test_a_format_that_cannot_be_used_is_refused_by_name(offered_formats, name, attribute, message):
    offered_formats(**{name: attribute})
    with pytest.raises(UsageError, match=f"call format '{name}' of loud.*{message}"):
        with_formats(FORMATS)


def test_without_plug_ins_the_table_is_the_built_in_one():
    assert with_formats(FORMATS) is FORMATS


def named(name):
    """A function of this name, whatever it is."""

    def made(*given):
        return None

    made.__name__ = name
    return made


@pytest.mark.parametrize(
    ("decorate", "message"),
    [
        (lambda: callmark.report("brief", ending=".md")(3), "goes above a function or a class, no"),
        (lambda: callmark.runner(named("9 lives")), "'9 lives' is no name: letters, digits, _ and"),
        (lambda: callmark.report("brief", ending="md")(named("f")), "must look like .txt: 'md'"),
        (
            lambda: callmark.scorer(measures=["so so"])(named("f")),
            "@callmark.scorer f: measures: 'so so' is no name",
        ),
    ],
)
def test_a_decorator_says_what_is_wrong_with_what_it_was_given(decorate, message):
    with pytest.raises(PluginError, match=message):
        decorate()


def test_a_runner_that_is_passed_needs_a_name_and_no_file():
    with plugin_scope():
        with pytest.raises(UsageError, match="runner: 'my model' is no name"):
            add_runner(named("my model"))
        # As a notebook makes one: no file has its source.
        typed_in: dict[str, object] = {"__name__": "typed_in"}
        exec(compile("def typed(conversation): ...", "<cell 3>", "exec"), typed_in)  # noqa: S102
        assert add_runner(typed_in["typed"]) == "typed"
        [row] = rows_of("runner")
        assert (row.home, row.sha256) == ("<cell 3>", None)


def test_a_format_of_a_file_does_not_take_the_name_of_another():
    with plugin_scope():
        add_plugins([callmark.call_format("hermes", opening="CALL")(named("read"))])
        with pytest.raises(
            UsageError, match="call format 'hermes': there is a format of this name already"
        ):
            with_formats(FORMATS)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs packages that offer entry points of a group from one module."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(package, group, *points, module="offered_parts", text=""):
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{point}\n" for point in points]
        (folder / "entry_points.txt").write_text(f"[callmark.{group}]\n" + "".join(lines))
        (tmp_path / f"{module}.py").write_text(text)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return add


def test_a_runner_that_two_packages_offer_is_refused_with_their_names(install):
    for package in ("other", "another"):
        install(package, "runners", "mine = offered_parts:make", text="def make(options): ...\n")
    with pytest.raises(
        UsageError, match="--runner: 'mine' is offered by several packages: another, other"
    ):
        find_runner("mine")


MARKED = "import callmark\n\n@callmark.scorer(measures=['ok'])\ndef nice(sample, trace): ...\n"


@pytest.mark.parametrize(
    ("packages", "text", "message"),
    [
        (("one",), "def nice(sample, trace): ...\n", "is not decorated with @callmark.scorer"),
        (("one", "two"), MARKED, "scorer 'nice' is offered by several packages"),
    ],
)
def test_a_scorer_of_a_package_that_cannot_be_used_is_refused(install, packages, text, message):
    for package in packages:
        install(package, "scorers", "nice = offered_parts:nice", text=text)
    with pytest.raises(UsageError, match=message):
        rows_of("scorer")


def test_a_package_whose_runner_nobody_chose_is_not_loaded(install):
    install("large", "runners", "large = offered_parts:make", text="raise MemoryError\n")
    assert rows_of("runner") == ()
    assert "large" in runner_names()
    assert runner_mark("nobody_has_it") is None


def test_an_error_in_which_no_plug_in_took_part_is_of_none(install):
    install("large", "runners", "large = offered_parts:make")
    assert plugin_behind(ValueError("never raised")) is None
