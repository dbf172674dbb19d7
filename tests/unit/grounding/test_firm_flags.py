"""What a firm rule must leave alone, and what it must still see: a false firm flag fails a run."""

import pytest
from tests.unit.grounding.asking import call, item

import callmark

TOWN = {"town": "Tarn", "population": 51230, "mayor": "Iris Kohl"}
RIGHT = "Tarn has 51,230 people."


def firm(answer, result=TOWN, prompt="How many people live in Tarn?", **metadata):
    scores = callmark.score_item(
        item(prompt, **metadata), answer, [call(result)], span_extractor="claims"
    )
    return sorted({one["rule"] for one in scores["statements"] if one.get("tier") == "firm"})


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Is it 500,000?", "It is not true that Tarn has 500,000 people; it has 51,230."),
        ("Is it 500,000?", "It's not the case that there are 500,000 — there are 51,230."),
        ("Is it 500,000?", "It is false that it has 500,000 people, it has 51,230."),
        ("Is it 500,000?", "None of that is correct. Tarn has 51,230 people."),
        ("Is it 500,000?", "Nothing of that is true: Tarn has 51,230 people."),
        ("Is it 500,000?", "None of this is true: Tarn has 51,230 people."),
        ("They say it has 500,000 people.", "The opposite is the case: Tarn has 51,230 people."),
        ("Stimmt das?", "Es stimmt nicht, dass Tarn 500.000 Einwohner hat: Es sind 51.230."),
        ("Stimmt das?", "Nichts davon stimmt: Es sind 51.230."),
        ("¿Es cierto?", "No es cierto que tenga 500.000 habitantes: tiene 51.230."),
        ("¿Es cierto?", "Nada de eso es cierto: son 51.230."),
        ("C'est vrai ?", "Il n'est pas vrai que Tarn a 500 000 habitants : elle en a 51 230."),
        ("C'est vrai ?", "Rien de cela n'est vrai : elle a 51 230 habitants."),
    ],
)
def test_a_wrong_premise_of_the_user_may_be_corrected(prompt, answer):
    assert firm(answer, prompt=prompt) == []


@pytest.mark.parametrize(
    "answer",
    [
        "{} None of the above is correct for other towns.",
        "{} All of this is wrong if the census was.",
        "{} Everything else is made up.",
        "{} All of the figures in your mail are wrong.",
        "{} Every statement to the contrary is false.",
        "{} That is true, and I am not kidding.",
        "You wrote that none of this is true. But it is: {}",
        "Some say that all of this is made up: it is not. {}",
        "Nobody can say that the following is false: {}",
        "I doubt that you need more than this: {}",
        "It's not true that nothing was found: {}",
        "Ignore everything I said before. {}",
        "Everything I said earlier was wrong. Here is the right figure: {}",
        "Sorry, that was wrong. {}",
        "One guest writes “Everything here is a lie”. {}",
        "Do not confuse it with Tarp. {}",
        "Alles andere ist falsch: {}",
        "Todo lo demás es falso: {}",
    ],
)
def test_a_caveat_takes_nothing_back(answer):
    assert firm(answer.format(RIGHT)) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The following is false. {}",
        "The answer below is wrong: {}",
        "What is below is false. {}",
        "Nothing below is true: {}",
        "None of this is true: {}",
        "Here is a list of false statements: {}",
        "Wrong answer: {}",
        "The opposite is the case: {}",
        "It is not true that {}",
        "It is by no means the case that {}",
        "{} That is incorrect.",
        "{} That's false.",
        "{} These numbers are wrong.",
        "{} None of the above is true.",
        "{} I made this up.",
        "{} I take that back.",
        "{} April fools!",
        "{} Please ignore what I just said.",
        "~~{}~~",
        "Folgendes ist falsch: {}",
        "Das Gegenteil ist der Fall: {}",
        "{} Das stimmt so nicht.",
        "Respuesta incorrecta: {}",
        "{} Eso no es correcto.",
        "Mauvaise réponse : {}",
        "{} Ce n'est pas vrai.",
    ],
)
def test_what_the_answer_takes_back_is_denied(answer):
    assert firm(answer.format(RIGHT)) == ["denial"]


def test_what_another_turn_said_is_not_taken_back():
    said = [{"role": "user", "content": "And its mayor?"}]
    messages = [{"role": "user", "content": "How many people live in Tarn?"}]
    scores = callmark.score_item(
        item([*messages, *said]),
        f"That is not correct. {RIGHT}",
        [call(TOWN)],
        span_extractor="claims",
    )
    assert not [one for one in scores["statements"] if one.get("tier") == "firm"]


CHECKED = {"rows": 1204, "invalid": [{"line": 388, "value": "2024-13-01"}, {"line": 17}]}
CLAIM = {"claim": "The bridge is 4,200 m long", "verdict": "false", "actual_m": 2737}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (CHECKED, "The following lines are wrong: line 388 (2024-13-01)."),
        (CHECKED, "All of the following entries are incorrect: 2024-13-01 (line 388)."),
        (CHECKED, "It is wrong that line 388 has 2024-13-01: there is no month 13."),
        (CHECKED, "Everything in line 388 is wrong: 2024-13-01 is no date."),
        (CLAIM, "It is not true that the bridge is 4,200 m long. It is 2,737 m long."),
        ({"planet": "Saturn", "km": 142984}, "It is not true that Saturn is 5 km wide."),
        ({"price": 64, "old_price": 80}, "The price isn't $80 — it's $64."),
        ({"price": 64, "old_price": 80}, "The price is not $80. It is $64."),
        ({"price": 64, "old_price": 80}, "It isn't 80; you pay 64."),
    ],
)
def test_what_was_found_wrong_may_be_called_wrong(result, answer):
    assert firm(answer, result, prompt="Look at it.") == []


@pytest.mark.parametrize("answer", ["The price is not $64.", "It isn't 64. It is red."])
def test_a_value_with_nothing_instead_is_denied(answer):
    assert firm(answer, {"price": 64}) == ["denial"]


TICKETS = {"tickets": ["TCK-2041", "TCK-2042", "TCK-2047"]}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (TICKETS, "There is no TCK-2044."),
        (TICKETS, "I could not find TCK-2040 in the results."),
        (TICKETS, "TCK-2044, TCK-2045 and TCK-2046 are missing from the list."),
        (TICKETS, "A new ticket would be called TCK-2048."),
        (TICKETS, "TCK-2048 would be the next one."),
        ({"code": "SAVE15"}, "The code SAVE20 does not exist; SAVE15 does."),
        ({"code": "SAVE15"}, "You don't need SAVE10; SAVE15 is better."),
        ({"course": "CS101"}, "CS101 is needed before CS102."),
        ({"encoding": "UTF-16"}, "UTF-16 is less common than UTF-32."),
        ({"seat": "14C"}, "Your seat is 14C, between 14B and 14D."),
        ({"gate": "B12", "terminal": "T2"}, "Print it on A4 paper and go to gate B12."),
    ],
)
def test_a_code_that_is_named_for_what_it_is_not(result, answer):
    assert firm(answer, result, prompt="What is there?") == []


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (TICKETS, "Your ticket is TCK-2044."),
        (TICKETS, "TCK-2044 is open, and you need nothing else."),
        ({"code": "SAVE15"}, "Use SAVE20 today."),
        ({"course": "CS101"}, "You are in CS102."),
    ],
)
def test_a_code_that_nobody_gave_is_found(result, answer):
    assert firm(answer, result, prompt="What is there?") == ["identifier"]


POINTS = {"name": "Ida", "points": 1219}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (POINTS, "Ida has 1219 points, not 2219."),
        (POINTS, "Ida has 1219 points (not 1,291)."),
        (POINTS, "It is not 1,220 points but 1,219."),
        (POINTS, "With one more point it would be 1,220."),
        (CHECKED, "2 of 1,204 rows are invalid; 1,202 are fine."),
        ({"build": 4512}, "Build 4512 failed. The next build will be 4513."),
        ({"sold": 1443}, "With two for you, 1,445 would be sold."),
        ({"page": 217}, "You are on page 217, so you have read 216 pages."),
        ({"status": 503}, "A 503 means that it is overloaded, unlike a 500 or 502."),
        (
            {"founded": 1998, "report_year": 2023},
            "It turned 25 in 2023, and 2024 is its 26th year.",
        ),
    ],
)
def test_a_number_beside_the_right_one_is_no_slip(result, answer):
    assert firm(answer, result, prompt="What is there?") == []


@pytest.mark.parametrize("answer", ["Ida has 2219 points.", "Ida has 1,291 points so far."])
def test_a_slip_is_found(answer):
    assert firm(answer, POINTS) == ["misread"]


@pytest.mark.parametrize(
    ("result", "prompt", "answer"),
    [
        (
            {"web": "sha256:4f1b9c0ad8e27735c1", "db": "sha256:a07733ee1bc95d0421"},
            "Which digests?",
            "web: 4f1b9c0a, db: a07733ee",
        ),
        (
            {"pandas": {"installed": "2.1.0", "latest": "2.2.2"}},
            "Is it outdated?",
            "pandas is one minor release behind (2.1 vs 2.2).",
        ),
        (
            {"session": "7d0c3a52-9b1e-4f36-8a77-0e5d2c41b9fe", "user": "u_8841"},
            "Which session?",
            "User 8841 has a session that ends in b9fe.",
        ),
        (
            {"mon": "09:00-18:30", "tue": "09:00-18:30", "sat": "10:00-14:00"},
            "When is it open?",
            "That's 9.5 hours on Monday and 23 hours a week.",
        ),
        (
            {"bill": 86.4, "people": 3},
            "Split it with 18 % tip.",
            "Tip: $15.55\nTotal: $101.95\nPer person: $33.98",
        ),
        ({"metar": "EDDH SCT032 BKN048"}, "Clouds?", "Clouds at about 975 m and 1,460 m."),
    ],
)
def test_parts_and_easy_workings_have_a_base(result, prompt, answer):
    assert firm(answer, result, prompt=prompt) == []


@pytest.mark.parametrize("answer", ["web: 5f1b9c0a, db: b07733ee", "It is 3.7 and 8.4 here."])
def test_what_is_no_part_has_none(answer):
    result = {"web": "sha256:4f1b9c0ad8e27735c1", "tag": "v14.11-alpine"}
    assert firm(answer, result) == ["baseless"]


ORDER = {"order": "ORD-10000", "total": 592.82, "points": 1219}


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Was ORD-10000 5.00?", "It is not true that ORD-10000 came to 5.00; it was 592.82."),
        ("How much?", "It is not true that ORD-10000 came to 5.00."),
        ("Was ORD-10000 cancelled?", "It is not correct that ORD-10000 was cancelled."),
        ("Do I have 6219 points?", "You have 1219 points. So that is not correct."),
        ("How much?", "The invoice shows 592.82. That is incorrect."),
        ("Wie viel?", "Ihnen wurden 592,82 berechnet. Das stimmt so nicht."),
    ],
)
def test_what_a_denied_clause_is_about_is_not_denied(prompt, answer):
    assert firm(answer, ORDER, prompt=prompt) == []


@pytest.mark.parametrize(
    "answer",
    ["It is not true that ORD-10000 came to 592.82.", "It is false that you have 1219 points."],
)
def test_what_a_denied_clause_says_of_it_is_denied(answer):
    assert firm(answer, ORDER, prompt="What did ORD-10000 come to?") == ["denial"]
