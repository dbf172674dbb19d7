"""Samples in which something is looked up by one call: a search, a page, a file, a program, a
repository. Among them dense answers (the slice `teacher_heavy`), long documents (`long_context`),
locale probes in other languages, and requests that mislead (out of range, malformed), where the
right answer calls, but not as asked."""

from __future__ import annotations

from functools import partial

from callmark.datasets.generate.records import (
    Answer,
    Day,
    Draft,
    Label,
    MadeCall,
    Number,
    Recipe,
    Span,
    World,
    made_turns,
)
from callmark.datasets.generate.tools import (
    Subject,
    hits_on,
    join_prompt,
    offer_some,
    open_page,
    read_file,
    read_repository,
    read_upload,
    run_code,
    search,
    subject_of,
)
from callmark.datasets.generate.topics import (
    ENGLISH,
    PROBES,
    SYSTEM,
    WORKING,
    Language,
    english,
    form_of,
)
from callmark.records.jsontext import Json

TOP_K = ((2, "two"), (4, "four"), (5, "five"), (8, "eight"))
FOLDERS = ("reports", "surveys", "registers", "notes", "archive")
_FACTOR = 37
MODULES = ("pool", "cache", "queue", "mailer", "search", "billing", "upload", "export")


def plain_answer(world: World, calls: tuple[MadeCall, ...], *spans: Span) -> Answer:
    turns = made_turns(calls, tuple(world.pick(WORKING) for _ in calls))
    return Answer(turns, world.pick(ENGLISH.before), spans, world.pick(ENGLISH.after))


def one_call(
    world: World,
    prompt: str | list[dict[str, Json]],
    call: MadeCall,
    span: Span,
    facts: tuple[Number | Day | Label, ...] = (),
    **metadata: Json,
) -> Draft:
    return Draft(
        prompt=prompt,
        calls=(call,),
        answer=plain_answer(world, (call,), span),
        facts=facts,
        metadata={**metadata, **offer_some(world, (call,))},
    )


def _search_prompt(world: World, subject: Subject, extra: str = "") -> str:
    search_for = world.pick(ENGLISH.search).format(q=subject.query)
    return join_prompt(world, subject.question, search_for, extra, world.pick(ENGLISH.marker))


def search_for_both(world: World) -> Draft:
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject))
    facts = (subject.number, subject.day)
    return one_call(world, _search_prompt(world, subject), call, subject.both(), facts)


def search_with_top_k(world: World) -> Draft:
    subject = subject_of(world)
    top_k, word = world.pick(TOP_K)
    call = search(subject.query, subject.entity, hits_on(world, subject), top_k=top_k)
    prompt = _search_prompt(world, subject, f"The {word} best hits are enough.")
    return one_call(world, prompt, call, subject.both(), (subject.number, subject.day))


def search_for_number(world: World) -> Draft:
    """Nothing is required by name: any grounded line will do."""
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject))
    prompt = _search_prompt(world, subject, "The figure alone will do.")
    return one_call(world, prompt, call, subject.only_number())


def search_for_date(world: World) -> Draft:
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject))
    prompt = _search_prompt(world, subject, "The date alone will do.")
    return one_call(world, prompt, call, subject.only_date(), (subject.day,))


def page(world: World) -> Draft:
    subject = subject_of(world)
    call = open_page(subject.url, page_text(world, subject))
    which = world.pick(
        ("It is on the page {url}.", "Open {url} and read it there.", "See {url} for that.")
    ).format(url=subject.url)
    text = join_prompt(world, subject.question, which, world.pick(ENGLISH.marker))
    prompt: str | list[dict[str, Json]] = text
    if world.rng.randrange(3) == 0:
        prompt = [
            {"role": "system", "content": world.pick(SYSTEM)},
            {"role": "user", "content": text},
        ]
    return one_call(world, prompt, call, subject.both(), (subject.number, subject.day))


def page_text(world: World, subject: Subject) -> str:
    return "\n".join(
        (
            f"{subject.region}: data sheet on {subject.entity}",
            world.pick(("Kept by the regional office.", "Public record.", "Free to copy.")),
            subject.sheet,
            f"Nearest town: {world.place(2).name}",
        )
    )


def file(world: World) -> Draft:
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    call = read_file(path, page_text(world, subject))
    where = world.pick(ENGLISH.read).format(path=path)
    prompt = join_prompt(world, subject.question, where, world.pick(ENGLISH.marker))
    return one_call(world, prompt, call, subject.both(), (subject.number, subject.day))


def upload(world: World) -> Draft:
    subject = subject_of(world)
    file_id = f"file-{subject.slug}"
    call = read_upload(file_id, page_text(world, subject))
    where = f"I uploaded the sheet, its id is {file_id}."
    prompt = join_prompt(world, where, subject.question, world.pick(ENGLISH.marker))
    return one_call(world, prompt, call, subject.both())


def code(world: World) -> Draft:
    return _code(world, None)


def code_in_language(world: World) -> Draft:
    return _code(world, "python")


def _code(world: World, language: str | None) -> Draft:
    expression, value = expression_of(world)
    call = run_code(expression, str(value), language=language)
    place = world.place()
    why = world.pick(
        (
            "I need this for the {name} accounts in {region}.",
            "The {name} office in {region} wants to see the number.",
            "This goes into the {name} report for {region}.",
        )
    ).format(name=place.name, region=place.region)
    task = world.pick(("Run this and tell me what it prints:", "What does this print? Run it:"))
    choice = f" Set the language to {language}." if language else ""
    marker = world.pick(ENGLISH.marker)
    prompt = f"{why}{choice} {task}\n```\nprint({expression})\n```\n{marker}"
    pattern = world.pick(("the program prints {n}", "the output is {n}", "it comes to {n}"))
    number = Number(value, 0)
    span = Span(pattern, (number,), english())
    return one_call(world, prompt, call, span, (number,), strict_keys=["stdout"])


def expression_of(world: World) -> tuple[str, int]:
    """An expression whose value no other sample has."""
    units, small = world.units(), world.rng.randrange(_FACTOR - 1)
    if world.rng.randrange(2):
        return f"{units} * {_FACTOR} + {small}", units * _FACTOR + small
    value = units * _FACTOR + _FACTOR - 1
    first, second = value // 3 + small, value // 2
    return f"sum([{first}, {second}, {value - first - second}])", value


def repository(world: World) -> Draft:
    place, module = world.place(), world.pick(MODULES)
    label = Label(f"{place.name[:2].upper()}-{world.units(1)}")
    limit = Number(world.units(), 0)
    path, name = f"config/{module}.toml", f"{place.name}-{place.region}".lower().replace(" ", "-")
    content = f"# settings of the {module} service\nrelease = {label.text}\nlimit = {limit.plain}\n"
    call = read_repository(path, name, content)
    prompt = join_prompt(
        world,
        world.pick(
            (
                "Which release and which limit does the {m} module of the repository {n} have?",
                "In the repository {n}: to which release is {m} pinned, and with which limit?",
            )
        ).format(m=module, n=name),
        f"It is set in {path}.",
        world.pick(ENGLISH.marker),
    )
    pattern = f"the {module} module is pinned to {{i}} with a limit of {{n}}"
    span = Span(pattern, (label, limit), english())
    return one_call(world, prompt, call, span, (label, limit))


LOOKUPS = (
    Recipe("search_both", "lookup", "simple", "text", search_for_both, share=4),
    Recipe("search_top_k", "lookup", "simple", "text_and_number", search_with_top_k, share=3),
    Recipe("search_number", "lookup", "simple", "text", search_for_number, share=2),
    Recipe("search_date", "lookup", "simple", "text", search_for_date),
    Recipe("page", "page", "simple", "url", page),
    Recipe("file", "file", "simple", "path", file, share=3),
    Recipe("upload", "file", "simple", "id", upload),
    Recipe("code", "code", "simple", "program", code, share=3),
    Recipe("code_in_language", "code", "simple", "program_and_choice", code_in_language),
    Recipe("repository", "repository", "simple", "path_and_text", repository),
)


# Filler of long documents: no digits, no quotation marks, nothing that anybody asks about.
OPENINGS = (
    "Minutes of the spring assembly of the {name} trust, held in {region}.",
    "Working paper on the upkeep of footpaths around {name}, {region}.",
    "Transcript of the public hearing on the {name} footbridge plans in {region}.",
    "Circular to all volunteers of the {name} heritage group in {region}.",
)
SENTENCES = (
    "The chair thanked the volunteers from {name} for clearing the lower path before the rain.",
    "A member asked whether the benches along the river could be moved closer to the old mill.",
    "It was agreed that the gate stays open during daylight, weather permitting.",
    "Several people spoke in favour of planting hedges instead of putting up fences.",
    "The treasurer explained at some length how donations are kept apart from fees.",
    "Nobody objected to the proposal, although two members wished to think it over.",
    "The question of parking came up again and was put off to the next assembly.",
    "Visitors from {region} have praised the signs, but found the arrows too small.",
    "The caretaker reported that the roof of the boathouse is tight again.",
    "A working group will look into quieter mowers and report back in the autumn.",
    "There was a long discussion about dogs, which ended where it had begun.",
    "The school would like to use the meadow for a sports day once the grass is dry.",
    "One speaker recalled how the valley near {name} looked before the road was built.",
    "The minutes of the last assembly were approved without changes.",
    "It was noted that the map in the shelter shows a path that no longer exists.",
    "The committee recommends painting the handrail in the same green as before.",
    "Two families have offered to look after the flower beds behind the chapel.",
    "The neighbours asked for a quieter generator during the summer market.",
    "A retired engineer from {region} offered advice on the drainage free of charge.",
    "The lending library in the station hall is used more than anybody expected.",
    "It remains unclear who owns the narrow strip between the hedge and the ditch.",
    "The speaker compared the plans with those of a village further up the valley.",
    "Children had left drawings on the notice board, which were admired by all.",
    "The secretary will write to the water board once more, politely but firmly.",
    "Coffee and cake were provided by the bakers of {name}.",
    "Some felt that the brochure is too long, others that it leaves out the best parts.",
    "The gravel on the upper path has settled well after the second layer.",
    "An exhibition of old photographs is planned for the winter months.",
    "The assembly expressed its sympathy to the families affected by the flood.",
    "Keys to the tool shed are to be returned to the caretaker after use.",
    "The lighting near the steps is weak, and somebody will have a look at it.",
    "There is still no agreement on the name of the new ferry.",
    "A storm had blown over the large poplar, which the sawmill collected.",
    "The choir of {name} will sing at the opening, whether or not it rains.",
    "Members were reminded not to feed the geese, however much they insist.",
    "The plan to mark the trail with coloured stones found many friends.",
    "It was suggested to ask the university for students who like old documents.",
    "The bus company declined to add a stop, but may reconsider next season.",
    "Most complaints concern the mud, and the mud concerns everybody.",
    "The meeting closed with a walk along the quay towards {region}.",
)


LONG_BYTES = 24 * 1024


def dense(world: World) -> Draft:
    """Three lines, as many as are scored, and material for a fourth."""
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.md"
    label = Label(f"{subject.slug[:2].upper()}-{world.units(1)}")
    cost, staff, visits = (
        Number(world.units(slot), decimals) for slot, decimals in ((2, 2), (3, 1), (4, 0))
    )
    content = "\n".join(
        (
            page_text(world, subject),
            f"File mark: {label.text}",
            f"Upkeep: {cost.plain} EUR",
            f"Hours worked: {staff.plain}",
            f"Enquiries: {visits.plain}",
        )
    )
    call = read_file(path, content)
    spans = (
        subject.both(),
        Span("the file mark is {i}, and upkeep came to {n} EUR", (label, cost), english()),
        Span("staff put in {n} hours", (staff,), english()),
    )
    prompt = join_prompt(
        world,
        subject.question,
        f"Also tell me file mark, upkeep and hours worked. All of it is in {path}.",
        "Write three lines, each beginning with Integration:",
    )
    return Draft(
        prompt=prompt,
        calls=(call,),
        answer=plain_answer(world, (call,), *spans),
        facts=(subject.number, subject.day, label, cost, staff),
        metadata={"slices": ["teacher_heavy"], **offer_some(world, (call,))},
        spare_span=Span("people sent {n} enquiries", (visits,), english()),
    )


def long_search(world: World) -> Draft:
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject))
    where = world.pick(ENGLISH.search).format(q=subject.query)
    prompt = _long_prompt(world, f"{subject.question} {where}")
    facts = (subject.number, subject.day)
    return one_call(world, prompt, call, subject.both(), facts, long_context=True)


def long_file(world: World) -> Draft:
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    call = read_file(path, page_text(world, subject))
    where = world.pick(ENGLISH.read).format(path=path)
    prompt = _long_prompt(world, f"{subject.question} {where}")
    return one_call(world, prompt, call, subject.both(), long_context=True)


def _long_prompt(world: World, question: str) -> list[dict[str, Json]]:
    """Minutes of a meeting that have nothing to do with the question behind them."""
    text = f"{_document(world)}\n\n{question}\n{world.pick(ENGLISH.marker)}"
    return [
        {"role": "system", "content": world.pick(SYSTEM)},
        {"role": "user", "content": text},
    ]


def _document(world: World) -> str:
    places = [world.place(slot) for slot in range(4)]
    paragraphs = [world.pick(OPENINGS).format(name=places[1].name, region=places[1].region)]
    size = len(paragraphs[0])
    draw = world.rng.random
    while size < LONG_BYTES:
        chosen = [SENTENCES[int(draw() * len(SENTENCES))] for _ in range(6)]
        place = places[int(draw() * 4)]
        paragraph = " ".join(chosen).format(name=place.name, region=place.region)
        paragraphs.append(paragraph)
        size += len(paragraph) + 2
    return "\n\n".join(paragraphs)


REPORTS = (
    Recipe("dense", "dense", "complex", "path", dense),
    Recipe("long_search", "long", "complex", "text", long_search),
    Recipe("long_file", "long", "complex", "path", long_file),
)


def by_search(world: World, locale: str, language: Language) -> Draft:
    subject = subject_of(world, 0, language, form_of(locale))
    call = search(subject.query, subject.entity, hits_on(world, subject))
    where = world.pick(language.search).format(q=subject.query)
    facts = (subject.number, subject.day)
    return _draft(
        world, subject, call, join_prompt(world, subject.question, where), language, facts
    )


def by_file(world: World, locale: str, language: Language) -> Draft:
    """Nothing is required by name: a wrong form shows in the probe alone."""
    subject = subject_of(world, 0, language, form_of(locale))
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    where = world.pick(language.read).format(path=path)
    call = read_file(path, page_text(world, subject))
    return _draft(world, subject, call, join_prompt(world, subject.question, where), language)


def _draft(
    world: World,
    subject: Subject,
    call: MadeCall,
    request: str,
    language: Language,
    facts: tuple[Number | Day, ...] = (),
) -> Draft:
    metadata: dict[str, Json] = {
        "language": language.code,
        "locale": subject.form.locale,
        "locale_probe": True,
        **offer_some(world, (call,)),
    }
    before, after = world.pick(language.before), world.pick(language.after)
    return Draft(
        prompt=join_prompt(world, request, world.pick(language.marker)),
        calls=(call,),
        answer=Answer(made_turns((call,)), before, (subject.both(),), after),
        facts=facts,
        metadata=metadata,
    )


LOCALE_PROBES = tuple(
    Recipe(
        f"probe_{locale}_{structure}",
        "locale_report",
        "simple",
        structure,
        partial(make, locale=locale, language=language),
        share=share,
    )
    for locale, (language, share) in PROBES.items()
    for structure, make in (("text", by_search), ("path", by_file))
)


MOST_HITS = 100  # what the search allows
TOO_MANY = ("five hundred", "two thousand", "ten thousand", "a million")


def out_of_range(world: World) -> Draft:
    subject = subject_of(world)
    call = search(subject.query, subject.entity, hits_on(world, subject), top_k=MOST_HITS)
    prompt = join_prompt(
        world,
        subject.question,
        f'Search for "{subject.query}" and fetch {world.pick(TOO_MANY)} hits,'
        " or as many as the tool allows at most.",
        world.pick(ENGLISH.marker),
    )
    return one_call(
        world,
        prompt,
        call,
        subject.both(),
        (subject.number, subject.day),
        adversarial={"type": "range", "expected": "clamp_to_maximum"},
    )


def malformed_address(world: World) -> Draft:
    subject = subject_of(world)
    call = open_page(subject.url, page_text(world, subject))
    rest = subject.url.removeprefix("https://")
    broken = world.pick(("htps:/{r}", "https//{r}", "https:///{r}", "hxxps://{r}")).format(r=rest)
    prompt = join_prompt(
        world,
        subject.question,
        f"Open {broken} for it. Somebody mangled the beginning of that address when copying it;"
        " mend it.",
        world.pick(ENGLISH.marker),
    )
    return one_call(
        world,
        prompt,
        call,
        subject.both(),
        (subject.number, subject.day),
        adversarial={"type": "malformed", "expected": "correct_and_call"},
    )


ADVERSARIAL = (
    Recipe("out_of_range", "adversarial", "moderate", "text_and_number", out_of_range),
    Recipe("malformed_address", "adversarial", "moderate", "url", malformed_address),
)
