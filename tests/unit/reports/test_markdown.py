"""Markdown as GitHub shows it: short enough, and nothing in it is anybody's but ours."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.builders import make_result, numbered
from tests.hostile import HOSTILE, STEERING
from tests.unit.reports.finished_runs import finished, hostile_result, mixed, report_of

from callmark.reports.finished_run import FinishedRun
from callmark.reports.markdown import (
    LIMIT,
    as_code,
    as_text,
    fit_sections,
    fold_lines,
    report_markdown,
    table,
)

GITHUB = MarkdownIt("gfm-like", {"linkify": False})
OUR_TAGS = {
    "h3", "ul", "li", "p", "strong", "em", "code", "table", "thead", "tbody", "tr", "th", "td",
    "details", "summary",
}  # fmt: skip
any_text = st.text(
    st.one_of(st.characters(), st.sampled_from("`|<>@#*_[]()\\\n\r\t&$:/ " + STEERING))
)


def html_of(markdown: str) -> str:
    return GITHUB.render(markdown)


def check_is_ours(markdown: str) -> None:
    """No tag that we do not write, and outside of code nothing that GitHub would link."""
    html = html_of(markdown)
    assert {tag.lower() for tag in re.findall(r"</?([A-Za-z][^\s>/]*)", html)} <= OUR_TAGS
    assert not re.search(r"<(?!/?[a-z0-9]+>)", html), "an attribute, a comment or worse"
    bare = re.sub(r"<code>.*?</code>", "", html, flags=re.S)
    assert not re.search(r"[@#]\w|https?:|www\.", re.sub(r"&#?\w+;", "", bare))
    assert not set(STEERING) & set(html)


def test_verdict_gates_and_failing_samples(tmp_path: Path):
    text = report_markdown(finished(tmp_path, mixed()))
    assert text.startswith("### ⚠️ Incomplete: ")
    assert "| ❌ fail | privacy (`privacy_ok_rate`) |" in text
    assert "- **privacy**: Share of samples without personal data" in text
    assert "<details><summary>3 trials to look at</summary>" in text
    assert "- `s30`: `privacy`" in text
    check_is_ours(text)


def test_a_run_without_faults_names_none(tmp_path: Path):
    run = finished(tmp_path, numbered(make_result() for _ in range(20)))
    assert "to look at" not in report_markdown(run)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_shown_and_means_nothing(text: str, tmp_path: Path):
    run = finished(tmp_path, [make_result(0, sample_id="good"), hostile_result(text, 1)])
    report = msgspec.structs.replace(run.report, warnings=(text,), verdict_reason=text)
    shown = report_markdown(msgspec.structs.replace(run, report=report))
    check_is_ours(shown)
    assert len(shown) <= LIMIT
    for rows in tables_of(shown):
        assert len({row.count("|") for row in rows}) == 1, rows


def tables_of(markdown: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in markdown.split("\n"):
        if line.startswith("|"):
            found[-1].append(line.replace("\\|", ""))
        elif found[-1]:
            found.append([])
    return [rows for rows in found if rows]


@given(any_text)
def test_any_text_stays_where_it_is_put(text: str):
    markdown = "\n".join(
        [
            f"- {as_text(text)}",
            f"- {as_code(text)}",
            "",
            *table(("a", "b"), [(as_text(text), as_code(text))]),
            *fold_lines(f"1 {text}", ["- x"]),
            "the end",
        ]
    )
    check_is_ours(markdown)
    html = html_of(markdown)
    assert html.count("<td>") == 2
    assert html.count("<details>") == html.count("</details>") == 1
    assert html.rstrip().endswith("<p>the end</p>")


@given(
    st.lists(st.lists(st.text("ab", max_size=90), max_size=4), max_size=12), st.integers(400, 2000)
)
def test_what_has_no_room_is_left_out_as_a_whole_and_counted(sections, limit):
    text = fit_sections(sections, limit)
    assert len(text) <= limit
    whole = "".join(f"{line}\n" for section in sections for line in section)
    assert text == whole or "parts are left out" in text


def test_hundreds_of_locales_fit(tmp_path: Path):
    results = numbered(
        make_result(metadata={"locale": f"x{n}" * 200, "slices": [f"y{n}" * 300]}, f1=0.0)
        for n in range(300)
    )
    text = report_markdown(finished(tmp_path, results))
    assert len(text) <= LIMIT
    assert "and 270 more" in text


def test_a_report_alone_will_do():
    text = report_markdown(FinishedRun(report=report_of(mixed())))
    assert "- `s30`: `short of privacy_ok_rate`" in text
