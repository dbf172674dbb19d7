"""Settings are read whole, with the line of every key, or refused with the line of the mistake."""

import pytest

from callmark.errors import UsageError
from callmark.store.settings import MAX_DEPTH, MAX_VALUES, read_settings


@pytest.fixture
def settings(tmp_path):
    def read(text: str | bytes):
        path = tmp_path / "settings.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_settings(path)

    return read


@pytest.fixture
def message(settings, tmp_path):
    def read(text: str | bytes) -> str:
        with pytest.raises(UsageError) as caught:
            settings(text)
        return str(caught.value).removeprefix(f"{tmp_path / 'settings.yaml'}")

    return read


def test_values_and_lines(settings):
    found = settings("# first\nseed: 1\ngates:\n  a: {b: 2,\n    c: [3]}\n")
    assert found.values == {"seed": 1, "gates": {"a": {"b": 2, "c": [3]}}}
    assert found.lines == {
        ("seed",): 2,
        ("gates",): 3,
        ("gates", "a"): 4,
        ("gates", "a", "b"): 4,
        ("gates", "a", "c"): 5,
    }


@pytest.mark.parametrize("text", ["", "# only a remark\n", "---\n", "~\n", b"\xef\xbb\xbf"])
def test_nothing_is_nothing(settings, text):
    assert settings(text).values == {}


def test_a_windows_shell_writes_utf_16(settings):
    assert settings("seed: 7\n".encode("utf-16")).values == {"seed": 7}


def test_an_alias_and_what_is_merged_keep_their_lines(settings):
    found = settings("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\nc: *a\n")
    assert found.values == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"x": 1}}
    assert found.lines["b", "x"] == 1
    assert found.lines["b", "y"] == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: 1\nb: \xff\n", ":2: not UTF-8 (byte 8)"),
        ("a: 1\n".encode("utf-16") + b"x", ":2: not UTF-16 (byte 12)"),
        ("a: 1\nb: \x07\n", ":2: not YAML: special characters are not allowed"),
        ("\n- a\n", ":2: must hold `key: value` lines, see `callmark init`"),
        ("a: 1\ntrue: 2\n", ":2: a key must be text: put it into quotes"),
        ("a: 1\n[b]: 2\n", ":2: a key must be text: put it into quotes"),
        ("a: {b: 1,\n b: 2}\n", ":2: a.b: stands on line 1 too"),
        ("a: 1\nb: 2024-02-30\n", ':2: not YAML: "2024-02-30" is no timestamp'),
        ("a: 1\nb: !!timestamp x\n", ':2: not YAML: "x" is no timestamp'),
        ("a: 1\nb: !!bool x\n", ':2: not YAML: "x" is no bool'),
        ("a: 1\nb: !!int ''\n", ':2: not YAML: "" is no int'),
        ("a: 1\nb: " + "7" * 5000, ':2: not YAML: "' + "7" * 58 + "… is no int"),
        ("a: 1\nb: " + "[" * 5000, f":2: not YAML: nested deeper than {MAX_DEPTH} levels"),
        ("a: 1\n" + "- " * 200, ":2: not YAML: "),
        ("a: &a\n  - *a\n", f":1: not YAML: nested deeper than {MAX_DEPTH} levels"),
        ("a: 1\n---\nb: 2\n", ":2: not YAML: but found another document"),
    ],
)
def test_a_mistake_has_its_line(message, text, expected):
    assert message(text).startswith(expected)


def test_aliases_of_aliases_do_not_fill_the_memory(message):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    found = message("\n".join(lines))
    assert found.endswith(f": more than {MAX_VALUES} values, with aliases")
