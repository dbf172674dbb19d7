"""What can be looked up: the shape of a topic, and the English topics with the sentences around
them."""

from typing import NamedTuple


class Topic(NamedTuple):
    """`{e}` is the thing, `{r}` its region, `{n}` the number, `{d}` the date. The four ways to
    state it hold no other digits, quotation marks or identifiers; `sheet`, how a source records
    it, shares no five words in a row with them."""

    entity: str  # with {p}, the name of the place
    aspect: str
    decimals: int
    ask: str
    both: str
    number: str
    date: str
    sheet: str


class Language(NamedTuple):
    """One language: what is asked about, how a search and the marker are asked for."""

    code: str
    topics: tuple[Topic, ...]
    search: tuple[str, ...]  # with {q}
    read: tuple[str, ...]  # with {path}
    marker: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    nothing: tuple[str, ...]  # with {e}


TOPICS = (
    Topic(
        "{p} Bridge", "main span opening", 3,
        "How long is the main span of the {e} in {r}, and when was it opened?",
        "the main span of the {e} measures {n} m, and traffic has crossed it since {d}",
        "the main span of the {e} measures {n} m",
        "traffic has crossed the {e} since {d}",
        "Main span: {n} m. Opened: {d}.",
    ),
    Topic(
        "{p} Canal", "navigable length survey", 3,
        "What is the navigable length of the {e} in {r}, and when was it last surveyed?",
        "boats can use {n} km of the {e}, as the survey of {d} found",
        "boats can use {n} km of the {e}",
        "the latest survey of the {e} is from {d}",
        "Navigable: {n} km. Surveyed: {d}.",
    ),
    Topic(
        "{p} Reservoir", "storage volume measurement", 2,
        "How much water does the {e} in {r} hold, and on which day was that measured?",
        "the {e} held {n} megalitres when the gauge was read on {d}",
        "the {e} holds {n} megalitres",
        "the gauge of the {e} was read on {d}",
        "Storage: {n} Ml. Gauge read: {d}.",
    ),
    Topic(
        "{p} Glacier", "ice area mapping", 2,
        "How large is the {e} in {r}, and when was it mapped?",
        "the ice of the {e} covered {n} ha when it was mapped on {d}",
        "the ice of the {e} covers {n} ha",
        "the map of the {e} was drawn on {d}",
        "Ice area: {n} ha. Mapped: {d}.",
    ),
    Topic(
        "{p} Observatory", "altitude first light", 2,
        "At what altitude does the {e} in {r} stand, and when did it see first light?",
        "the dome of the {e} stands {n} m above the sea and saw its first light on {d}",
        "the dome of the {e} stands {n} m above the sea",
        "the {e} saw its first light on {d}",
        "Altitude: {n} m. First light: {d}.",
    ),
    Topic(
        "{p} Library", "volumes inventory", 0,
        "How many volumes does the {e} in {r} keep, and when did the last inventory end?",
        "the {e} keeps {n} volumes, counted in the inventory that ended on {d}",
        "the {e} keeps {n} volumes",
        "the inventory of the {e} ended on {d}",
        "Holdings: {n}. Inventory closed: {d}.",
    ),
    Topic(
        "{p} Museum", "visitor record year", 0,
        "How many visitors did the {e} in {r} count in its best year, and when did it open?",
        "the {e} has welcomed visitors since {d} and counted {n} of them in its best year",
        "the {e} counted {n} visitors in its best year",
        "the {e} has welcomed visitors since {d}",
        "Best year: {n} admissions. Founded: {d}.",
    ),
    Topic(
        "{p} Solar Farm", "annual yield grid connection", 1,
        "What is the annual yield of the {e} in {r}, and since when is it on the grid?",
        "the {e} yields {n} MWh a year and has fed the grid since {d}",
        "the {e} yields {n} MWh a year",
        "the {e} has fed the grid since {d}",
        "Yield: {n} MWh. Grid: {d}.",
    ),
    Topic(
        "{p} Quarry", "stone output licence", 1,
        "How much stone does the {e} in {r} cut in a year, and until when is it licensed?",
        "the {e} cuts {n} tonnes of stone a year under a licence that runs until {d}",
        "the {e} cuts {n} tonnes of stone a year",
        "the licence of the {e} runs until {d}",
        "Output: {n} t. Licence ends: {d}.",
    ),
    Topic(
        "{p} Tunnel", "bore length breakthrough", 1,
        "How long is the {e} in {r}, and on which day was the breakthrough?",
        "the bore of the {e} is {n} m long, and both sides met on {d}",
        "the bore of the {e} is {n} m long",
        "both sides of the {e} met on {d}",
        "Bore: {n} m. Breakthrough: {d}.",
    ),
    Topic(
        "{p} Peak", "summit elevation ascent", 2,
        "How high is the {e} in {r}, and when was it first climbed?",
        "the summit of the {e} lies at {n} m and was first reached on {d}",
        "the summit of the {e} lies at {n} m",
        "climbers first reached the summit of the {e} on {d}",
        "Elevation: {n} m. Ascent: {d}.",
    ),
    Topic(
        "{p} Harbour", "cargo turnover", 0,
        "How much cargo did the {e} in {r} handle, and when did its new quay open?",
        "the {e} handled {n} tonnes of cargo, and its new quay has been in use since {d}",
        "the {e} handled {n} tonnes of cargo",
        "the new quay of the {e} has been in use since {d}",
        "Turnover: {n} t. Quay: {d}.",
    ),
    Topic(
        "{p} Railway", "track length timetable", 3,
        "How much track does the {e} in {r} run on, and from which day is its timetable valid?",
        "the {e} runs on {n} km of track, with a timetable that is valid from {d}",
        "the {e} runs on {n} km of track",
        "the timetable of the {e} is valid from {d}",
        "Track: {n} km. Timetable from: {d}.",
    ),
    Topic(
        "{p} Vineyard", "press house harvest", 1,
        "How many litres did the {e} in {r} press, and on which day did the harvest begin?",
        "the {e} pressed {n} litres from a harvest that began on {d}",
        "the {e} pressed {n} litres",
        "the harvest of the {e} began on {d}",
        "Pressed: {n} l. Picking began: {d}.",
    ),
)  # fmt: skip

ENGLISH = Language(
    code="en",
    topics=TOPICS,
    search=(
        'Search the web for "{q}".',
        'Please look it up; the query "{q}" should do.',
        'A web search for "{q}" will tell you.',
        'Use the query "{q}".',
        'Run one search, "{q}", and take it from there.',
    ),
    read=(
        "It stands in the file {path}.",
        "Please read {path}, it is all in there.",
        "Take it from {path}.",
        "My notes are in {path}; look there.",
    ),
    marker=(
        "Put the finding on a line that begins with Integration:",
        "I only read the line that starts with `Integration:`, so answer there.",
        "Begin the line that holds the result with Integration:",
        "Give the result on one line, after the word `Integration:`",
        "Answer with a line that opens with `Integration:`",
    ),
    before=(
        "",
        "Here is what I found.",
        "I looked it up.",
        "Done.",
        "This is what came back.",
        "I checked.",
    ),
    after=(
        "",
        "Tell me if you need more.",
        "Shall I look up anything else?",
        "That should answer your question.",
        "I hope that settles it.",
    ),
    nothing=(
        "I found nothing about the {e} that would answer this.",
        "The search returned nothing on the {e}, so I cannot say.",
        "There is no entry for the {e} in what came back, and I do not want to guess.",
        "Nothing that I was shown speaks of the {e}; please try another source.",
    ),
)

# What a model says beside its calls.
WORKING = ("", "", "", "Let me look.", "One moment, I am checking.", "I will look that up.")

SYSTEM = (
    "You are a careful assistant of a small survey office. Use the tools where they help.",
    "You answer for a regional archive. Rely on what the tools return, not on memory.",
    "You are the research desk of a travel magazine. Facts come from the tools only.",
    "You help an engineer who has little time. Be short and exact.",
)

# Nothing in these rests on any result.
VAGUE = (
    "things look much as one would expect there",
    "the place is well known for its size and its long history",
    "this is among the largest of its kind for miles around",
    "the figures have hardly moved since people began to keep them",
    "experts agree that it compares well with its neighbours",
    "there is little doubt that it will stay so for years to come",
)

REMARKS = (
    "That is all I can do here.",
    "I have nothing to add.",
    "So much for that.",
    "This should be enough for now.",
)
