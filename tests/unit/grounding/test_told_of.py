"""Values that are told of a record which has another there: by name, by the question, as a total."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

MEMBERS = [
    {"name": "Ana Ruiz", "email": "ana@example.org", "id": "ana_r", "pays_on": 17},
    {"name": "Bo Lind", "email": "bo@example.org", "id": "bolind", "pays_on": 10},
    {"name": "Cy Marsh", "email": "cy@example.org", "id": "cym", "pays_on": 23},
]
FILES = [
    {"filename": "plan.docx", "owner": "ana@example.org", "last_modified": "2026-02-26T16:20"},
    {"filename": "notes.docx", "owner": "bo@example.org", "last_modified": "2026-02-25T09:45"},
]
WAGES = [
    {"Employee": "Ana Ruiz", "Hours": 15, "R&D_wage": 865.38},
    {"Employee": "Bo Lind", "Hours": 25, "R&D_wage": 1622.6},
    {"Employee": "TOTAL", "Hours": None, "R&D_wage": 2487.98},
]
SHOPS = [
    {
        "merchant_name": "Alder Books",
        "amount": "$54.99",
        "date": "2026-03-02",
        "category": "Reading",
    },
    {"merchant_name": "Birch Air", "amount": "$412.50", "date": "2026-03-09", "category": "Travel"},
    {"merchant_name": "Cedar Inn", "amount": "$175.20", "date": "2026-04-01", "category": "Travel"},
]
INCOME = [
    {"company": "Alder Inc.", "Net Income 2024": 5644, "Net Income 2025": 14974},
    {"company": "Birch Ltd.", "Net Income 2024": 912, "Net Income 2025": 1038},
]


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        ("The e-mail of Ana Ruiz is ana@example.org.", MEMBERS, []),
        ("The e-mail of Ana Ruiz is bo@example.org.", MEMBERS, ["bo@example.org"]),
        ("Ana Ruiz's email: bo@example.org", MEMBERS, ["bo@example.org"]),
        ("Ana Ruiz wrote to bo@example.org.", MEMBERS, []),
        ("plan.docx is owned by ana@example.org.", FILES, []),
        ("plan.docx is owned by bo@example.org.", FILES, ["bo@example.org"]),
        ("Ana Ruiz's R&D wage is 865.38.", WAGES, []),
        ("Ana Ruiz's R&D wage is 2487.98.", WAGES, ["2487.98"]),
        ("In 2025 Alder Inc. had a net income of 14974.", INCOME, []),
        ("In 2025 Alder Inc. had a net income of 5644.", INCOME, ["5644"]),
        ("The net income rose from 5644 in 2024 to 14974 in 2025.", INCOME, []),
    ],
)
def test_what_is_told_of_somebody_by_name(answer, results, flagged):
    assert [text for text, label, _ in statements(answer, results) if label in FLAGS] == flagged


@pytest.mark.parametrize(
    ("question", "answer", "flagged"),
    [
        ("What did I pay at Alder Books?", "You paid $54.99.", []),
        ("What did I pay at Alder Books?", "You paid $412.50.", ["412.50"]),
        ("When was I at Birch Air?", "On 2026-03-02.", ["2026-03-02"]),
        ("When was I at Birch Air?", "It was on 2026-03-09.", []),
        # Who is asked about one thing may tell of another, if it says so.
        ("What did I pay at Alder Books?", "You paid $412.50 at Birch Air.", []),
        ("What did I pay at Alder Books?", "Nothing there, but Birch Air took $412.50.", []),
        ("What did I pay besides Alder Books?", "You paid $412.50.", []),
        ("What did I spend on reading?", "You spent $54.99.", []),
        ("What did I spend on reading?", "You spent $175.20.", ["175.20"]),
        ("Show me what I spent.", "You spent $175.20 on reading.", ["175.20"]),
        ("Show me what I spent.", "You spent $54.99 on reading.", []),
        ("How much is it altogether?", "You spent $642.69.", []),
        ("How much is it altogether?", "You spent $175.20.", ["175.20"]),
        ("How much is it?", "The total was $175.20.", ["175.20"]),
        ("How much is it?", "The total was $642.69.", []),
        ("How much was Cedar Inn in total?", "The total was $175.20.", []),
        ("How much was reading in total?", "The total was $54.99.", []),
        # A longer answer tells of more than it was asked for.
        ("How much is it altogether?", "You paid $54.99, then $412.50, then $175.20.", []),
    ],
)
def test_what_answers_a_question(question, answer, flagged):
    found = statements(answer, SHOPS, prompt=question)
    assert [text for text, label, _ in found if label in FLAGS] == flagged


def test_the_last_question_is_the_one_that_is_answered():
    prompt = [
        {"role": "user", "content": "What did I pay at Birch Air?"},
        {"role": "assistant", "content": "One moment."},
        {"role": "user", "content": "Sorry, at Alder Books."},
    ]
    for answer, flagged in (("You paid $54.99.", []), ("You paid $412.50.", ["412.50"])):
        found = statements(answer, SHOPS, prompt=prompt)
        assert [text for text, label, _ in found if label in FLAGS] == flagged
