"""Reading an answer takes time in proportion to its length, whatever is in it."""

import time
from collections.abc import Callable

import pytest
from tests.unit.grounding.asking import call, claims, score

import callmark
from callmark.grounding.reading import LONGEST_LEAF, read_leaf
from callmark.grounding.values import find_values

# The CPU of a shared machine is noisy: run by make test-slow, not by every commit.
pytestmark = pytest.mark.slow

UNITS = [
    "{", "1", '"', "a.b.", "Integration: ", "|", "1,", "1 ", "a-", "It is 5. ", "é 5. ", '"ab" ', "1) ", "1. ", "'ab' ", "a@",
    "a@b.", "_", "#", "(", "2024-01-05 ", "“", "www.", "A1 ", "१,", "१ ", "| 5 ", "- 5\n", "é | 5 |\n", "the ", "e.g. ", "値", "\\n",
]  # fmt: skip
QUICK, THOROUGH = (3_000, 6_000, 12_000), (6_000, 12_000, 24_000, 48_000, 96_000)
FLOOR = 0.12  # seconds of CPU: below that, noise decides
RESULT = {"content": "lorem ipsum dolor sit amet consectetur " * 20, "count": 5}
WORDS = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiou" for c in "klmnprst"]


def cpu(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


Work = Callable[[int], Callable[[], object]]


def assert_linear(work: Work, sizes: tuple[int, ...] = THOROUGH) -> None:
    """Doubles the size until the clock can be trusted; then twice as much takes at most 3 times
    as long."""
    previous = cpu(work(sizes[0]))
    for size in sizes[1:]:
        now = cpu(work(size))
        if now > FLOOR:
            now = min(now, *(cpu(work(size)) for _ in range(4)))
            previous = min(previous, *(cpu(work(size // 2)) for _ in range(4)))
            assert now <= 3 * previous + 0.05, (
                f"{size} characters: {now:.2f} s, half of them: {previous:.2f} s"
            )
            return
        previous = now


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def readings_of(unit: str) -> list[Work]:
    """Everything that reads an answer or a result made of one piece over and over."""
    return [
        lambda size: lambda: [find_values(repeated(unit, size) + tail) for tail in ("", "#", "_")],
        lambda size: lambda: callmark.extract_spans("Integration: " + repeated(unit, size)),
        lambda size: lambda: callmark.extract_spans(repeated(unit, size), "claims"),
        lambda size: lambda: callmark.ground(repeated(unit, size), [RESULT]),
        lambda size: lambda: callmark.ground("it is 5", [{"content": repeated(unit, size)}]),
    ]


@pytest.mark.parametrize("unit", UNITS)
def test_reading_takes_linear_time(unit):
    for work in readings_of(unit):
        assert_linear(work, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_reading_long_texts_takes_linear_time(unit):
    for work in readings_of(unit):
        assert_linear(work)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["It is 5. ", "é 5. ", '"ab" ', "| 5 |\n", "- 5\n", "Integration: 5.\n", "é Integration: 5.\n"],
)
def test_scoring_takes_linear_time(unit):
    assert_linear(lambda size: lambda: score(repeated(unit, size), call(RESULT)))
    assert_linear(lambda size: lambda: claims(repeated(unit, size), call(RESULT)))


@pytest.mark.parametrize(
    "unit", [" ", "\t", "\u00a0", "\u3000", "*", "* ", "$1", "1%", "one hundred ", ",456", "1", "٣"]
)
def test_what_stands_over_and_over_beside_a_value_takes_linear_time(unit):
    for text in ("The price is 17{} of it, 18.", "{}17 is the price, 18."):
        assert_linear(
            lambda size, text=text: (
                lambda: claims(text.replace("{}", repeated(unit, size)), call({"price": 17}))
            )
        )


@pytest.mark.parametrize(
    "said",
    ["+49 30 {:07d}", "555-{:04d}", "a{}@quay.net", "https://quay{}.net/a", "10.{}.7.7"],
    ids=["phones", "short phones", "mailboxes", "hosts", "addresses"],
)
def test_personal_data_against_what_was_shown_take_linear_time(said):
    def work(size):
        numbers = range(size // 20)
        shown = "\n".join(said.format(2 * one) for one in numbers)
        text = " , ".join(said.format(one) for one in numbers)
        return lambda: callmark.check_privacy(text, known=shown)

    assert_linear(work)


def test_equal_numbers_on_both_sides_take_linear_time():
    assert_linear(
        lambda size: lambda: callmark.ground("7 " * (size // 8), [{"d": [7] * (size // 8)}])
    )


def test_dates_on_both_sides_take_linear_time():
    dates = [
        f"20{year:02}-{month:02}-{day:02}"
        for year in range(90)
        for month in range(1, 13)
        for day in range(1, 29)
    ]

    def work(size):
        some, others = dates[: size // 12], dates[-(size // 12) :]
        return lambda: callmark.ground(" ".join(some), [{"d": others}])

    assert_linear(work)


def test_quotations_against_a_long_result_take_linear_time():
    def work(size):
        quotes = " ".join(f'"{WORDS[i % 200]} {WORDS[i * 7 % 200]}"' for i in range(size // 60))
        content = " ".join(WORDS[i * i % 200] for i in range(size // 4))
        return lambda: callmark.ground(quotes, [{"content": content}])

    assert_linear(work)


def test_a_long_sentence_against_a_long_result_takes_linear_time():
    def work(size):
        span = " ".join(WORDS[i * i * 3 % 197] for i in range(size // 4))
        content = " ".join(WORDS[i * i * i % 193] for i in range(size // 4))
        return lambda: callmark.ground(span, [{"content": content}])

    assert_linear(work)


def test_many_turns_take_linear_time():
    def work(size):
        count = size // 16
        turns = [{"start": index * 16, "end": index * 16 + 15} for index in range(count)]
        return lambda: score("Integration: 5.\n" * count, call({"n": 5}, turn=1), turns=turns)

    assert_linear(work)


@pytest.mark.parametrize(
    "unit", ["Monday 9 am to 5 pm, ", "closed Monday, closed ", "at 9 am or ", "except Monday, "]
)
def test_opening_hours_take_linear_time(unit):
    hours = {"name": "Quay House", "hours": {"Monday": "9:0-17:0", "Tuesday": "9:0-17:0"}}
    assert_linear(lambda size: lambda: claims("Open " + repeated(unit, size), call(hours)))


def test_a_result_with_thousands_of_numbers():
    """Agents read listings and tables by the thousand."""

    def work(size: int) -> Callable[[], object]:
        text = repeated("7 ", size)
        return lambda: read_leaf.__wrapped__(text)

    assert_linear(work, (LONGEST_LEAF // 8, LONGEST_LEAF // 4, LONGEST_LEAF // 2, LONGEST_LEAF))
