"""One call, one answer: a search, a page, a file, a program, a repository."""

from __future__ import annotations

from callmark.datasets.generate.locales import english
from callmark.datasets.generate.records import (
    Answer,
    Day,
    Draft,
    Label,
    MadeCall,
    Number,
    Recipe,
    Span,
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
from callmark.datasets.generate.topics import ENGLISH, SYSTEM, WORKING
from callmark.datasets.generate.world import World
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
