"""Names for endpoints that allow only [a-zA-Z0-9_-]{1,64}."""

import re

import pytest

from callmark.calls.attempts import NameCodec
from callmark.errors import UsageError


def test_allowed_names_stay_and_others_read_naturally():
    codec = NameCodec(["web.search", "read_file", "Über tool"])
    assert codec.encode("web.search") == "web_search"
    assert codec.encode("read_file") == "read_file"
    assert codec.decode("web_search") == "web.search"
    assert codec.decode(codec.encode("Über tool")) == "Über tool"


def test_what_the_model_made_up_stays_as_it_is():
    assert NameCodec(["web.search"]).decode("web_serach") == "web_serach"
    assert NameCodec(["a"]).encode("old.tool") == "old_tool"


def test_a_collision_names_both_tools():
    with pytest.raises(UsageError, match=r"'web\.search' and 'web_search'.*'web_search'"):
        NameCodec(["web.search", "web_search"])
    NameCodec(["web.search", "web.search"])


def test_long_names_are_cut_and_told_apart():
    names = ["x" * 70 + end for end in ("a", "b")]
    codec = NameCodec(names)
    for name in names:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", codec.encode(name))
        assert codec.decode(codec.encode(name)) == name
