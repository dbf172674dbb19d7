"""Yes, no, and what nobody knows."""

import json

import pytest
from tests.unit.grounding.asking import statements

from callmark.calls.registry import Registry
from callmark.records.samples import sample_of
from callmark.records.trace import Trace, entry_of
from callmark.scorers.score import ScoreSettings, score_trial

BOAT = {"boat_id": "BT-4821", "life_raft": True, "diesel_heater": False, "bow_thruster": None}
CALL = {"name": "find_boat", "arguments": {}}


def flags(answer: str) -> list[tuple[str, str]]:
    item = {"prompt": "What is known?", "metadata": {"call_sequence": [CALL]}}
    sample = sample_of(item, index=0, sample_id="boat", item_sha256="")
    trace = Trace(model_output=answer, tool_trace=(entry_of({**CALL, "result": BOAT}),))
    marks = score_trial(sample, trace, ScoreSettings(registry=Registry(()))).statements
    return [(one.rule, answer[one.start : one.end]) for one in marks if one.is_flag]


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(BOAT),
        json.dumps(BOAT, indent=2),
        str(BOAT),
        "BT-4821\n- Life raft: yes\n- Diesel heater: no\n- Bow thruster: null",
        "BT-4821\n- **Bow thruster:** n/a",
    ],
)
def test_null_for_null_claims_nothing(answer):
    assert flags(answer) == []


def test_what_a_result_does_not_know_is_no_yes():
    assert flags("BT-4821 has a bow thruster.") == [("unknown", "bow thruster")]
    assert flags(json.dumps({**BOAT, "bow_thruster": True})) == [("unknown", "bow_thruster")]
    assert flags("BT-4821 has a diesel heater.") == [("polarity", "diesel heater")]


# Keys as a directory of houses has them; both are made up.
FULL = {
    "name": "Quay House",
    "city": "Ulm",
    "attributes": {
        "BusinessParking": {"garage": False, "street": True, "lot": False, "valet": False},
        "HouseReservations": False,
        "OutdoorSeating": True,
        "WiFi": "no",
        "HouseTakeOut": True,
        "HouseGoodForGroups": True,
        "Music": None,
        "Ambience": {"touristy": False, "romantic": False, "intimate": False, "classy": True, "casual": True},
    },
    "business_stars": 4.0,
}  # fmt: skip
BARE = {
    "name": "Quay House",
    "city": "Ulm",
    "attributes": {
        "BusinessParking": {"garage": False, "street": False, "lot": False, "valet": False},
        "HouseReservations": True,
        "OutdoorSeating": False,
        "WiFi": "free",
        "HouseTakeOut": None,
        "HouseGoodForGroups": None,
        "Music": False,
        "Ambience": None,
    },
    "business_stars": 4.0,
}
RIGHT = [
    (FULL, "Quay House does not offer WiFi, but has outdoor seating and takeout."),
    (FULL, "There is no WiFi available."),
    (FULL, "WiFi is not available."),
    (FULL, "WiFi is not available, but takeout is."),
    (FULL, "Neither WiFi nor reservations are available."),
    (FULL, "It has outdoor seating and takeout, but no WiFi or reservations."),
    (FULL, "Reservations are not accepted."),
    (FULL, "They don't take reservations."),
    (FULL, "While there's no WiFi, outdoor seating is available."),
    (FULL, "It lacks WiFi but offers takeout."),
    (FULL, "Street parking is available, but there is no garage, lot, or valet parking."),
    (FULL, "Parking is limited to the street."),
    (FULL, "Parking is available on the street, with no garage or lot."),
    (FULL, "Only street parking is available."),
    (FULL, "It offers street parking only; valet and garage parking are not available."),
    (FULL, "Takeout is available, and it is good for groups, though reservations aren't accepted."),
    (FULL, "The ambience is casual and classy, not romantic or touristy."),
    (FULL, "The ambience is casual and classy rather than intimate or romantic."),
    (FULL, "It is neither touristy nor romantic."),
    (FULL, "It doesn't have a romantic or intimate atmosphere."),
    (FULL, "The data does not say whether there is music."),
    (FULL, "No information about music is given."),
    (
        FULL,
        "It offers outdoor seating and takeout services. However, reservations and "
        "WiFi are unavailable.",
    ),
    (FULL, "- WiFi: No"),
    (FULL, "- WiFi: not available"),
    (FULL, "- Reservations: not accepted"),
    (FULL, "- Takeout: Yes"),
    (FULL, "It's walk-in only, as reservations are not taken."),
    (FULL, "Outdoor seating, takeout and group dining are offered, without WiFi."),
    (FULL, "Unfortunately, it does not provide WiFi access or accept reservations."),
    (FULL, "Customers should note that WiFi is not offered."),
    (
        FULL,
        "It offers takeout, has outdoor seating, and is suitable for groups, but "
        "does not take reservations or provide WiFi.",
    ),
    (FULL, "It accepts walk-ins (no reservations) and offers takeout."),
    (FULL, "The place is casual, with no romantic touch."),
    (FULL, "WiFi isn't something they offer."),
    (FULL, "It is not known for being romantic."),
    (FULL, "It has no valet parking, no garage and no lot, but street parking."),
    (FULL, "Parking can be found on the street."),
    (FULL, "Outdoor seating is available, as is takeout."),
    (FULL, "There's no WiFi, nor can reservations be made."),
    (FULL, "WiFi and reservations are not offered."),
    (FULL, "Takeout is offered, reservations are not."),
    (FULL, "It is casual and classy. It is not touristy, romantic, or intimate."),
    (FULL, "It does not have WiFi or take reservations, but it does have outdoor seating."),
    (FULL, "It has outdoor seating but does not have WiFi."),
    (FULL, "A great choice for groups, with takeout too."),
    (FULL, "It can accommodate groups."),
    (BARE, "There is no parking available."),
    (BARE, "It does not offer parking."),
    (BARE, "It has no street, lot, garage or valet parking."),
    (BARE, "It takes reservations and has free WiFi, but no outdoor seating."),
    (BARE, "It does not play music."),
    (BARE, "No music is played."),
    (BARE, "The ambience is not described."),
    (BARE, "Outdoor seating is not available, but WiFi is free."),
    (BARE, "It offers free WiFi but not outdoor seating."),
]
WRONG = [
    (FULL, "It offers free WiFi."),
    (FULL, "It has WiFi available."),
    (FULL, "Reservations are accepted."),
    (FULL, "They take reservations."),
    (FULL, "It does not offer takeout."),
    (FULL, "Takeout is not available."),
    (FULL, "There is no outdoor seating available."),
    (FULL, "Outdoor seating is unavailable."),
    (FULL, "It has a parking lot."),
    (FULL, "Valet parking is available."),
    (FULL, "There is no street parking."),
    (FULL, "It does not offer parking."),
    (FULL, "No parking is available."),
    (FULL, "Parking is not available."),
    (FULL, "It is not suitable for groups."),
    (FULL, "It isn't ideal for groups."),
    (FULL, "The ambience is romantic."),
    (FULL, "It has an intimate, casual atmosphere."),
    (
        FULL,
        "The restaurant offers outdoor seating, takeout, and no WiFi, making it an intimate place.",
    ),
    (FULL, "It offers live music."),
    (FULL, "There is no music."),
    (FULL, "The data does not mention anything about parking."),
    (FULL, "No information about outdoor seating is provided."),
    (FULL, "There is no information on whether takeout is offered."),
    (FULL, "Guests can enjoy WiFi."),
    (FULL, "Customers can make reservations."),
    (FULL, "It offers free Wi-Fi, takeout and a romantic setting."),
    (FULL, "It offers wireless internet."),
    (FULL, "There is no patio seating."),
    (FULL, "Carry-out is not offered."),
    (FULL, "It does not offer WiFi access or parking services."),
    (BARE, "Ample parking is available."),
    (BARE, "It offers parking."),
    (BARE, "Parking is available on site."),
    (BARE, "It offers takeout."),
    (BARE, "It is great for groups."),
    (BARE, "It is suitable for groups."),
    (BARE, "It is a perfect spot for groups."),
    (BARE, "It offers live music."),
    (BARE, "There is outdoor seating."),
    (BARE, "It does not offer WiFi."),
    (BARE, "There is no free WiFi."),
]


def raised(answer, record):
    return [one for one in statements(answer, record) if one[1] in ("contradicted", "unsupported")]


@pytest.mark.parametrize(("record", "answer"), RIGHT)
def test_what_a_record_says_raises_no_flag(record, answer):
    assert raised(answer, record) == []


@pytest.mark.parametrize(("record", "answer"), WRONG)
def test_what_a_record_denies_or_does_not_know_is_flagged(record, answer):
    assert raised(answer, record) != []


def test_an_everyday_word_needs_its_kind_beside_it():
    record = {**FULL, "attributes": {"Ambience": {"casual": False, "classy": True, "hip": False}}}
    assert raised("A good place for a casual dinner.", record) == []
    assert raised("The ambiance is casual.", record) == [("casual", "contradicted", "polarity")]
    assert raised("It is classy and casual.", record) == [("casual", "contradicted", "polarity")]


def test_all_of_a_kind_is_denied_only_without_a_word_for_a_part_of_it():
    assert raised("There is no garage parking.", FULL) == []
    assert raised("Private parking is not offered.", FULL) == []
    found = raised("They do not offer WiFi or parking.", FULL)
    assert found == [("parking", "contradicted", "polarity")]


def test_what_the_results_know_is_not_unknown():
    found = raised("The listing does not mention any information about parking or WiFi.", FULL)
    assert [text for text, _, _ in found] == ["parking", "WiFi"]
    assert raised("There is no information about music.", FULL) == []
    assert raised("It is cheap, and there is no mention of WiFi.", FULL) == []
    assert raised("There is no mention of any parking.", FULL) != []


def test_a_text_may_be_written_as_programs_hold_it():
    record = {"name": "Quay", "pets": "u'no'", "parking": 'u"free"', "lift": "'no'", "stars": 3}
    assert [rule for _, _, rule in raised("It offers parking and a lift.", record)] == ["polarity"]
    assert raised("It offers parking, but no lift.", record) == []
    assert raised("Pets are allowed.", record) != []


def test_what_one_guest_had_is_no_claim_about_a_field():
    record = {"name": "Quay", "dancing": False, "fireworks": False, "pets": True, "review": "Fine."}
    told = "One guest celebrated a birthday there, with dancing on the pier and fireworks."
    assert raised(told, record) == []
    assert raised("It offers dancing.", record) == [("dancing", "contradicted", "polarity")]


def test_a_text_that_lists_fields_is_no_prose_that_tells_otherwise():
    listed = "Account: 88-12\nAmount due: $118.44\nAutopay: off\nDue: 2026-11-20\nPlan: Basic"
    told = listed + "\nThe customer says that autopay is on for the business account, as agreed."
    assert [rule for _, _, rule in statements("Your autopay is on.", listed)] == ["polarity"]
    assert not [rule for _, _, rule in statements("Your autopay is on.", told)]
