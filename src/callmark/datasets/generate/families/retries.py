"""A tool fails first: the model has to try again, in the same way or in another."""

from __future__ import annotations

from callmark.datasets.generate.families.chains import several_calls
from callmark.datasets.generate.families.lookups import FOLDERS, page_text
from callmark.datasets.generate.records import Draft, Recipe
from callmark.datasets.generate.tools import (
    hits_on,
    join_prompt,
    open_page,
    read_file,
    search,
    subject_of,
    write_file,
)
from callmark.datasets.generate.words.english import ENGLISH
from callmark.datasets.generate.world import World

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
