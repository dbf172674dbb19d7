"""Deeds: what an answer says was done needs a call that did it, or a result that tells of it."""

import pytest
from tests.unit.grounding.asking import statements

import callmark
from callmark.grounding.deeds import DoneCall, find_deeds
from callmark.grounding.spans import Outline
from callmark.records.statements import FLAGS

CANCEL = ("cancel_order", "Cancel a pending order.")
UPDATE = ("update_user_address", "Change the address of a user.")
READ = ("get_order_details", "Get the status of an order.")


def deeds(text, *calls, told=()):
    done = [DoneCall(None, name, description) for name, description in calls]
    outline = Outline(text)
    found = find_deeds(outline, done, lambda _: None, lambda word, _: word in told)
    return [(deed.verb, deed.is_served) for deed in found]


@pytest.mark.parametrize(
    "text",
    [
        "I have cancelled your order.",
        "I've gone ahead and cancelled your order.",
        "I cancelled it.",
        "Your order #W1 has been successfully cancelled.",
        "The flight on May 24th has been canceled.",
        "Your order is now cancelled.",
        "The cancellation has been processed.",
        "I've submitted the cancellation.",
        "Your cancellation is complete.",
        "Ich habe Ihre Bestellung vom Mai storniert.",
        "Ihre Bestellung wurde erfolgreich storniert.",
        "He cancelado su pedido.",
        "Su pedido ha sido cancelado.",
        "J'ai annulé votre commande.",
        "Votre commande a été annulée.",
    ],
)
def test_a_strong_deed_needs_a_call_of_its_kind(text):
    for calls in ((), (READ,), (UPDATE,)):
        assert [served for _, served in deeds(text, *calls)] == [False], calls
    assert [served for _, served in deeds(text, CANCEL)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "I have updated your address.",
        "The refund has been issued to your card.",
        "A bag has been added, and $50 has been charged.",
        "Ihre Adresse wurde geändert.",
        "He actualizado su dirección.",
        "Nous avons modifié votre adresse.",
    ],
)
def test_a_weak_deed_needs_any_call_that_writes(text):
    for calls in ((), (READ,), (("transfer_to_human_agents", ""),)):
        assert {served for _, served in deeds(text, *calls)} == {False}, calls
    for calls in ((CANCEL,), (UPDATE,), (("code_exec", "Run code."),), (("frobnicate", ""),)):
        assert {served for _, served in deeds(text, *calls)} == {True}, calls


def test_what_a_name_does_not_say_the_description_does():
    cancels = ("orders_v2", "Cancels an order. Returns the order.")
    assert deeds("I have cancelled your order.", cancels) == [("I have cancelled", True)]
    looks = ("orders_v2", "Get an order. Cancelled ones too.")
    assert deeds("I have cancelled your order.", looks) == [("I have cancelled", False)]


def test_two_deeds_of_one_sentence_are_two():
    found = deeds("I booked all flights and charged your card.")
    assert [verb.split()[-2:] for verb, _ in found] == [["I", "booked"], ["charged", "your"]]


def test_a_result_may_tell_what_nobody_says_that_he_did():
    text = "Your order has been cancelled."
    assert deeds(text, told=("cancelled",)) == [("has been cancelled", True)]
    assert deeds("I have cancelled it.", told=("cancelled",)) == [("I have cancelled", False)]


@pytest.mark.parametrize(
    "text",
    [
        "I have found your order.",
        "I've checked and reviewed your reservation.",
        "You have booked two flights.",
        "Your reservation was booked under basic economy.",
        "Once it has been cancelled, you get a refund.",
        "If I have cancelled the wrong one, tell me.",
        "No cancellation has been placed.",
        "I have not cancelled anything.",
        "I haven't cancelled anything.",
        "Flights that have been booked within a day can be cancelled.",
        "I will cancel your order.",
        "Has it been cancelled?",
        "Please confirm that the order has been cancelled.",
        "Returns are submitted per order.",
        "Wir haben nicht storniert, wenn Sie zögern.",
    ],
)
def test_what_is_no_deed(text):
    assert deeds(text) == []


@pytest.mark.parametrize(
    ("content", "label"), [('{"done": true}', "supported"), ('{"error": "no"}', "unsupported")]
)
def test_calls_inside_the_prompt_count_as_done(content, label):
    """A step of a recorded conversation: what came before stands in its prompt."""
    function = {"name": "cancel_order", "arguments": '{"id": "W1"}'}
    prompt = [
        {"role": "user", "content": "Cancel W1."},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c", "content": content},
    ]
    item = {"prompt": prompt, "metadata": {"sample_id": "s"}}
    scores = callmark.score_item(item, "I have cancelled your order.", [])
    assert [(one["rule"], one["label"]) for one in scores["statements"]] == [("deed", label)]


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("Your order has been shipped.", ("create_shipment", "dispatch_order", "send_parcel")),
        ("Your account has been deleted.", ("delete_account", "remove_user", "cancel_account")),
    ],
)
def test_shipping_and_deleting_need_more_than_a_change(text, does):
    for name in ("update_order", "modify_pending_order_items", "exchange_items", "get_order"):
        assert [served for _, served in deeds(text, (name, ""))] == [False], name
    for name in does:
        assert [served for _, served in deeds(text, (name, ""))] == [True], name
    assert [served for _, served in deeds(text, READ, told=("shipped", "deleted"))] == [True]


@pytest.mark.parametrize(
    "answer",
    [
        "Wait, I made a mistake.",
        "We have successfully completed the task.",
        "I have completed all of the steps.",
    ],
)
def test_thinking_is_no_deed(answer):
    item = {"prompt": "Look at W1.", "metadata": {"call_sequence": [{"name": "get_order"}]}}
    calls = [{"name": "get_order", "arguments": {"id": "W1"}, "result": {"id": "W1"}}]
    told = callmark.score_item(item, answer, calls)["statements"]
    assert "deed" not in [one["rule"] for one in told]


@pytest.mark.parametrize(
    ("answer", "is_flag"),
    [
        ("Order #W4967593 has already been processed and cannot be changed.", False),
        ("Order #W4967593 has already been cancelled.", True),
        ("Your refund has already been issued.", True),
        ("Order #W4967593 has been processed.", True),
    ],
)
def test_what_a_result_says_was_done_already(answer, is_flag):
    order = {"order_id": "#W4967593", "status": "processed"}
    found = statements(answer, order)
    assert any(label in FLAGS and rule == "deed" for _, label, rule in found) is is_flag
