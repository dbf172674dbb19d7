"""Samples of several calls: one after the other, side by side, with a note at the end; and those in
which a tool fails first, so that the model has to try again, in the same way or in another."""

from __future__ import annotations

from callmark.datasets.generate.lookups import (
    FOLDERS,
    MODULES,
    expression_of,
    page_text,
    plain_answer,
)
from callmark.datasets.generate.records import (
    Day,
    Draft,
    Label,
    MadeCall,
    Number,
    Recipe,
    Span,
    World,
)
from callmark.datasets.generate.tools import (
    hit,
    hits_on,
    join_prompt,
    offer_some,
    open_page,
    read_file,
    read_repository,
    run_code,
    search,
    subject_of,
    write_file,
)
from callmark.datasets.generate.topics import ENGLISH, english
from callmark.records.jsontext import Json

SECOND_SOURCE = ("inspection report", "yearbook entry", "council minutes", "press archive")


def several_calls(
    world: World,
    prompt: str | list[dict[str, Json]],
    calls: tuple[MadeCall, ...],
    spans: tuple[Span, ...],
    facts: tuple[Number | Day | Label, ...],
    **metadata: Json,
) -> Draft:
    return Draft(
        prompt=prompt,
        calls=calls,
        answer=plain_answer(world, calls, *spans),
        facts=facts,
        metadata={**metadata, **offer_some(world, calls)},
    )


def search_then_open(world: World) -> Draft:
    """The search names the page, the page says it."""
    subject = subject_of(world)
    teaser = "The sheet lists size, age and keeper."
    calls = (
        search(subject.query, subject.entity, hits_on(world, subject, teaser)),
        open_page(subject.url, page_text(world, subject), step=1),
    )
    how = world.pick(
        (
            'Search for "{q}", then open the data sheet that comes up.',
            'Look for "{q}" and read the first page that you find.',
            'First the query "{q}", then the best page itself, please.',
        )
    ).format(q=subject.query)
    prompt = join_prompt(world, subject.question, how, world.pick(ENGLISH.marker))
    facts = (subject.number, subject.day)
    return several_calls(world, prompt, calls, (subject.both(),), facts)


def two_sources(world: World) -> Draft:
    """Both searches say the same; the answer stands without the second."""
    subject = subject_of(world)
    source = world.pick(SECOND_SOURCE)
    second = f"{subject.entity} {source}"
    listed = hit(f"From the {source}", subject.sheet, f"https://example.net/{subject.slug}/source")
    calls = (
        search(subject.query, subject.query, hits_on(world, subject)),
        search(second, second, [listed], step=1, spare=True),
    )
    how = world.pick(
        (
            'Search for "{q}", and to be sure for "{s}" afterwards.',
            'Use "{q}" first and then confirm it with "{s}".',
            'I trust two sources: "{q}", then "{s}".',
        )
    ).format(q=subject.query, s=second)
    prompt = join_prompt(world, subject.question, how, world.pick(ENGLISH.marker))
    facts = (subject.number, subject.day)
    return several_calls(world, prompt, calls, (subject.both(),), facts)


def side_by_side(world: World, count: int) -> Draft:
    """Independent searches in one turn, a line for each."""
    subjects = [subject_of(world, slot) for slot in range(count)]
    calls = tuple(search(each.query, each.entity, hits_on(world, each)[:1]) for each in subjects)
    queries = ", ".join(f'"{each.query}"' for each in subjects)
    names = " and of the ".join(f"{each.entity} in {each.region}" for each in subjects)
    what = world.pick(
        (
            "I need one figure each of the {names}.",
            "Please compare the sizes of the {names}.",
            "For a table: the key figure of the {names}.",
        )
    ).format(names=names)
    how = world.pick(("Search for all of them at once: {q}.", "The queries, in parallel: {q}."))
    each_line = "Give each result its own line, beginning with Integration:"
    prompt = join_prompt(world, what, how.format(q=queries), each_line)
    spans = tuple(each.only_number() for each in subjects)
    facts = tuple(each.number for each in subjects)
    return several_calls(world, prompt, calls, spans, facts)


def pair(world: World) -> Draft:
    return side_by_side(world, 2)


def triple(world: World) -> Draft:
    return side_by_side(world, 3)


def search_then_note(world: World) -> Draft:
    subject = subject_of(world)
    path, line = f"log/{subject.slug}.txt", f"{subject.entity}: looked up"
    calls = (
        search(subject.query, subject.entity, hits_on(world, subject)),
        write_file(path, line, step=1, spare=True),
    )
    how = world.pick(
        (
            'Search for "{q}". Then leave the line "{line}" in {path}.',
            'Look it up with "{q}", and afterwards write "{line}" to the file {path}.',
        )
    ).format(q=subject.query, line=line, path=path)
    prompt = join_prompt(world, subject.question, how, world.pick(ENGLISH.marker))
    facts = (subject.number, subject.day)
    return several_calls(world, prompt, calls, (subject.both(),), facts)


def read_run_note(world: World) -> Draft:
    """Configuration, a computation, a note: three tools in a row."""
    place, module = world.place(), world.pick(MODULES)
    name = f"{place.name}-{place.region}".lower().replace(" ", "-")
    limit, day = Number(world.units(1), 0), Day(*world.day())
    content = f"# settings of the {module} service\nlimit = {limit.plain}\nreviewed = {day.iso}\n"
    expression, value = expression_of(world)
    path, line = f"log/{name}.txt", f"{module} checked"
    calls = (
        read_repository(f"config/{module}.toml", name, content),
        run_code(expression, str(value), step=1),
        write_file(path, line, step=2, spare=True),
    )
    prompt = join_prompt(
        world,
        f"What limit does config/{module}.toml of the repository {name} set,"
        " and when was it reviewed?",
        f"After reading it, run `print({expression})` as a self-test, and then write"
        f' "{line}" to {path}.',
        world.pick(ENGLISH.marker),
    )
    pattern = f"the {module} module allows {{n}} entries and was reviewed on {{d}}"
    span = Span(pattern, (limit, day), english())
    return several_calls(world, prompt, calls, (span,), (limit, day))


CHAINS = (
    Recipe("search_then_open", "chain", "moderate", "text_then_url", search_then_open),
    Recipe("two_sources", "cross_check", "moderate", "text_then_text", two_sources),
    Recipe("pair", "compare", "moderate", "parallel", pair),
    Recipe("triple", "compare", "complex", "parallel", triple),
    Recipe("search_then_note", "note", "moderate", "text_then_content", search_then_note),
    Recipe("read_run_note", "workflow", "complex", "path_program_content", read_run_note),
)


LOCKED = ("folder is read-only", "no space left in this folder", "folder is locked by a backup")
BUSY = ("timed out after 30 s", "service busy, try again", "connection reset by the other side")


def other_folder(world: World) -> Draft:
    """The first folder cannot be written; the prompt names the second."""
    subject = subject_of(world)
    line = f"{subject.entity}: looked up"
    first, second = f"shared/{subject.slug}.txt", f"drafts/{subject.slug}.txt"
    calls = (
        search(subject.query, subject.entity, hits_on(world, subject)),
        write_file(first, line, step=1, error=world.pick(LOCKED)),
        write_file(second, line, step=2),
    )
    how = (
        f'Search for "{subject.query}". Then write "{line}" to {first};'
        f" if that does not work, write it to {second}."
    )
    prompt = join_prompt(world, subject.question, how, world.pick(ENGLISH.marker))
    facts = (subject.number, subject.day)
    return several_calls(world, prompt, calls, (subject.both(),), facts, expected_behaviour="retry")


def page_again(world: World) -> Draft:
    """The file says it; the page that has to be seen answers only the second time."""
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    notice = f"The sheet of {subject.region} is online. Printed copies on request."
    calls = (
        read_file(path, page_text(world, subject)),
        open_page(subject.url, notice, step=1, error=world.pick(BUSY), seq=1),
        open_page(subject.url, notice, step=2, seq=2),
    )
    how = (
        f"Read {path} for it. Then open {subject.url} to see that the sheet is online;"
        " if the page does not answer, try once more."
    )
    prompt = join_prompt(world, subject.question, how, world.pick(ENGLISH.marker))
    facts = (subject.number, subject.day)
    return several_calls(world, prompt, calls, (subject.both(),), facts, expected_behaviour="retry")


def file_again(world: World) -> Draft:
    """The same call, which answers only the second time, and then says it."""
    subject = subject_of(world)
    path = f"{world.pick(FOLDERS)}/{subject.slug}.txt"
    content = page_text(world, subject)
    calls = (
        read_file(path, content, error=world.pick(BUSY), seq=1),
        read_file(path, content, step=1, seq=2),
    )
    how = f"It stands in {path}. That drive is slow: if it does not answer, read it again."
    prompt = join_prompt(world, subject.question, how, world.pick(ENGLISH.marker))
    return several_calls(world, prompt, calls, (subject.both(),), (), expected_behaviour="retry")


RETRIES = (
    Recipe("other_folder", "retry", "moderate", "text_then_content", other_folder, share=4),
    Recipe("page_again", "retry", "moderate", "path_then_url", page_again, share=3),
    Recipe("file_again", "retry", "moderate", "path", file_again, share=3),
)
