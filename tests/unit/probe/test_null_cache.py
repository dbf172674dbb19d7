"""Answers of nulls are kept between probes, and only for exactly the same question."""

import msgspec
import pytest

from callmark.probe.local_views import NullCache, key_of
from callmark.probe.spec import NullAdapterSpec
from callmark.probe.views import NullRun, Question

IDENTITY = {"model": "m", "runner": {"dtype": "float32"}, "libraries": {"torch": "1"}}
TOOL = {"type": "function", "function": {"name": "t", "parameters": {}}}
QUESTION = Question(
    name="q", messages=[{"role": "user", "content": "x"}], tools=[TOOL], max_new_tokens=8
)
RUN = NullRun(spec=NullAdapterSpec(), seed=0, number=1, rank_multiplier=1.0)


class Counted:
    """Answers, and counts how often it had to."""

    def __init__(self):
        self.asked = 0

    def __call__(self, questions, run):
        self.asked += 1
        return [f"{run.number} {question.name} \ufffd" for question in questions]


def replaced(record, **changes):
    return msgspec.structs.replace(record, **changes)


def test_the_second_time_nothing_is_asked(tmp_path):
    make = Counted()
    cache = NullCache(tmp_path / "nulls")
    first = cache.texts(IDENTITY, [QUESTION], RUN, make)
    again = NullCache(tmp_path / "nulls")
    assert again.texts(IDENTITY, [QUESTION], RUN, make) == first
    assert (make.asked, cache.found, again.found) == (1, 0, 1)


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make = Counted()
    for _ in range(2):
        NullCache(None).texts(IDENTITY, [QUESTION], RUN, make)
    assert make.asked == 2
    assert list(tmp_path.iterdir()) == []


DIFFERENT = [
    ({**IDENTITY, "model": "other"}, [QUESTION], RUN),
    ({**IDENTITY, "libraries": {"torch": "2"}}, [QUESTION], RUN),
    (IDENTITY, [QUESTION, QUESTION], RUN),
    (IDENTITY, [replaced(QUESTION, max_new_tokens=9)], RUN),
    (IDENTITY, [replaced(QUESTION, messages=[{"role": "user", "content": "y"}])], RUN),
    (IDENTITY, [QUESTION], replaced(RUN, number=2)),
    (IDENTITY, [QUESTION], replaced(RUN, seed=1)),
    (IDENTITY, [QUESTION], replaced(RUN, rank_multiplier=2.0)),
    (IDENTITY, [QUESTION], replaced(RUN, spec=NullAdapterSpec(method="init_scale"))),
    (
        IDENTITY,
        [QUESTION],
        replaced(RUN, spec=NullAdapterSpec(method="init_scale", init_scale=0.1)),
    ),
]


def test_every_part_of_the_fingerprint_counts():
    keys = {key_of(*one) for one in [(IDENTITY, [QUESTION], RUN), *DIFFERENT]}
    assert len(keys) == len(DIFFERENT) + 1


def test_how_many_nulls_are_wanted_is_no_part_of_one_null():
    more = replaced(RUN, spec=NullAdapterSpec(runs=9, name="other", init_scale=0.5))
    assert key_of(IDENTITY, [QUESTION], more) == key_of(IDENTITY, [QUESTION], RUN)


@pytest.mark.parametrize(
    "spoilt",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"key":"other","texts":["x"]}', b'{"key":"K","texts":[]}'],
)
def test_a_spoilt_file_is_asked_again_and_mended(tmp_path, spoilt):
    make = Counted()
    cache = NullCache(tmp_path)
    first = cache.texts(IDENTITY, [QUESTION], RUN, make)
    (file,) = tmp_path.iterdir()
    file.write_bytes(spoilt.replace(b'"K"', f'"{file.stem}"'.encode()))
    assert cache.texts(IDENTITY, [QUESTION], RUN, make) == first
    assert make.asked == 2
    assert NullCache(tmp_path).texts(IDENTITY, [QUESTION], RUN, make) == first
    assert make.asked == 2


def test_a_folder_that_cannot_be_made_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("")
    cache = NullCache(tmp_path / "file" / "nulls")
    assert cache.texts(IDENTITY, [QUESTION], RUN, Counted()) == ["1 q \ufffd"]


def test_it_lies_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    NullCache.of_this_user().texts(IDENTITY, [QUESTION], RUN, Counted())
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "callmark" / "nulls"]
