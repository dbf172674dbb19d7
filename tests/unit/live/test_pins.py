"""`--pin`: what differs from call to call is the same for ever."""

import json

import pytest

from callmark.errors import UsageError
from callmark.live.record import Pins, read_pin

NOW = "2026-01-01T00:00:00Z"


def pinned(tool, result, *pins):
    return Pins([read_pin(pin) for pin in pins]).apply(tool, result)


@pytest.mark.parametrize("path", ["$.now", "/now"])
def test_a_path_or_a_pointer_in_a_plain_result(path):
    result = {"now": "today", "zone": "UTC"}
    assert pinned("web.time", result, f"web.time:{path}={NOW}") == {"now": NOW, "zone": "UTC"}
    assert result["now"] == "today"


def test_structured_content_and_the_text_that_repeats_it_stay_equal():
    value = {"now": "today", "n": 1}
    text = json.dumps(value, indent=2)
    result = {"content": [{"type": "text", "text": text}], "structuredContent": value}
    changed = pinned("clock", result, f"clock:$.now={NOW}")
    assert changed["structuredContent"] == {"now": NOW, "n": 1}
    assert changed["content"][0]["text"] == text.replace("today", NOW)


def test_every_element_an_index_and_other_values_than_text():
    result = {"rows": [{"id": "a"}, {"id": "b"}]}
    assert pinned("t", result, "t:$.rows[*].id=7") == {"rows": [{"id": 7}, {"id": 7}]}
    assert pinned("t", result, "t:/rows/1/id=null") == {"rows": [{"id": "a"}, {"id": None}]}
    assert pinned("t", {"a.b": 1}, "t:$['a.b']=2") == {"a.b": 2}


def test_other_tools_and_other_places_stay_and_an_unused_pin_is_known():
    pins = Pins([read_pin("t:$.nowhere=1"), read_pin("t:$.here=1")])
    assert pins.apply("u", {"here": 2}) == {"here": 2}
    assert pins.apply("t", {"here": 2}) == {"here": 1}
    assert pins.unused == ("t:$.nowhere=1",)


@pytest.mark.parametrize("text", ["", "clock", "clock=1", "clock:now=1", "clock:$.a..b=1"])
def test_a_pin_that_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError, match="--pin"):
        read_pin(text)
