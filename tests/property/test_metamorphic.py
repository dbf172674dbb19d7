"""The same evaluation, told in another way, gives the same numbers: the whole pipeline on the
bundled dataset, once as it is and once transformed."""

import json
import random
import unicodedata
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pace import few

import callmark
from callmark.resources import demo_paths

SEEDS = (1, 2)
PINNED = ("dataset_sha256", "fixtures_sha256", "tool_registry_sha256")
# Pairs of samples are made by the hash of their ids, intervals by their order.
BY_ID = ("chance_f1", "grounding_lift")
SOME = settings(max_examples=150, deadline=None, derandomize=True)


def read_lines(path):
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


class Told(NamedTuple):
    """All that goes into an evaluation, as plain values."""

    header: dict
    items: list
    fixtures: list
    answers: list


class Measured(NamedTuple):
    results: dict  # by sample id
    report: dict

    @property
    def scores(self):
        return {name: result["scores"] for name, result in self.results.items()}


def demo() -> Told:
    paths = demo_paths()
    header, *items = read_lines(paths.dataset)
    for name in PINNED:
        del header[name]
    fixtures = [line for file in sorted(paths.fixtures.glob("*")) for line in read_lines(file)]
    return Told(header, items, fixtures, read_lines(paths.answers))


@pytest.fixture
def measure(tmp_path):
    """Writes an evaluation into files, in the order in which it is told, and runs it."""

    def run(told: Told, **options) -> Measured:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        files = {
            "dataset.jsonl": [told.header, *told.items],
            "fixtures/all.jsonl": told.fixtures,
            "answers.jsonl": told.answers,
        }
        (folder / "fixtures").mkdir(parents=True)
        for name, lines in files.items():
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (folder / name).write_text(text, "utf-8")
        places = {
            "dataset": folder / "dataset.jsonl",
            "fixtures": folder / "fixtures",
            "model": folder / "answers.jsonl",
            "out": folder / "results.jsonl",
        }
        report = callmark.run({**places, **options}).to_dict()
        results = {line["sample_id"]: line for line in read_lines(places["out"])}
        return Measured(results, report)

    return run


@pytest.fixture(scope="module")
def as_told(tmp_path_factory):
    """The demo itself, run once."""
    return run_demo(tmp_path_factory.mktemp("demo"))


def run_demo(folder, **options) -> Measured:
    paths = demo_paths()
    out = folder / "results.jsonl"
    places = {"dataset": paths.dataset, "fixtures": paths.fixtures, "model": paths.answers}
    files = {name: str(path) for name, path in {**places, "out": out}.items()}
    report = callmark.run({**files, **options}).to_dict()
    return Measured({line["sample_id"]: line for line in read_lines(out)}, report)


def without(value, *names):
    """The value without the fields of these names, at every depth."""
    if isinstance(value, dict):
        return {key: without(entry, *names) for key, entry in value.items() if key not in names}
    if isinstance(value, list):
        return [without(entry, *names) for entry in value]
    return value


def totals(measured, *exempt):
    """Every number of the report that is no interval: metrics, blocks, histogram, counts."""
    names = ("metrics", "metrics_miss_free", "counts", "integration_span_count_histogram")
    names += ("per_tool_deltas", "locales", "slices", "privacy", "grounding", "misses")
    chosen = {name: measured.report[name] for name in names}
    return without(chosen, "ci_95", "method", *exempt)


def without_strict(scores):
    return {name: value for name, value in scores.items() if name != "strict_keys"}


def without_evidence(scores):
    copying = scores.get("copying")
    left_out = ("copying", "statements")
    kept = {name: value for name, value in without_strict(scores).items() if name not in left_out}
    return kept | {"stated": copying and copying["stated"]}


def of_grounding(scores):
    """What a score says about spans, whatever their places in the answer."""
    spans = [
        {name: span[name] for name in ("scored", "lax", "strict", "counted", "good")}
        for span in scores["spans"]
    ]
    names = ("lax", "strict", "spans_total", "spans_over_cap", "spans_counted", "facts_required")
    return {"spans": spans, **{name: scores[name] for name in names}}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_samples_answers_and_fixtures_does_not_matter(measure, as_told, seed):
    told = demo()
    for lines in (told.items, told.fixtures, told.answers):
        random.Random(seed).shuffle(lines)
    shuffled = measure(told)
    assert list(shuffled.results) == [item["metadata"]["sample_id"] for item in told.items]
    assert shuffled.scores == as_told.scores
    assert totals(shuffled, "first") == totals(as_told, "first")


@pytest.mark.parametrize("shards", [4])
def test_a46_shards_summarised_together_are_the_whole(measure, as_told, shards):
    """Every field of the report, intervals and gates included."""
    parts = [measure(demo(), num_shards=shards, shard_index=index) for index in range(shards)]
    assert sum(len(part.results) for part in parts) == len(as_told.results)
    lines = [line for part in reversed(parts) for line in part.results.values()]
    together = callmark.summarize_results(lines, integration_span_cap=3, span_extractor="marker")
    for name in together.keys() - {"header", "provenance", "shard", "timing", "warnings"}:
        assert together[name] == as_told.report[name], name
    assert {line["sample_id"]: line["scores"] for line in lines} == as_told.scores


def test_the_names_of_samples_do_not_matter(measure, as_told):
    """What compares one sample with another by the hash of its id is exempt."""
    told = demo()
    new = {
        item["metadata"]["sample_id"]: f"ñ-{at * 7919 % 1000}" for at, item in enumerate(told.items)
    }
    for owner in [item["metadata"] for item in told.items] + told.answers + told.fixtures:
        if "sample_id" in owner:
            owner["sample_id"] = new[owner["sample_id"]]
    renamed = measure(told)
    assert renamed.scores == {new[name]: scores for name, scores in as_told.scores.items()}
    assert totals(renamed, *BY_ID, "first") == totals(as_told, *BY_ID, "first")
    for name, failing in as_told.report["failing"].items():
        assert renamed.report["failing"][name]["sample_ids"] == [
            new[sample] for sample in failing["sample_ids"]
        ]


# Nothing in the demo says any of this.
UNRELATED = {
    "count": 918273645,
    "summary": "Qophyx zwolvend brantique.",
    "lines": ["mirulon vaskeet", {"hits": [77700077, -0.00123, "2391-11-23", "QXZ-999777"]}],
    "ok_too": True,
}


def told_beside(told: Told) -> Told:
    """Every served result says unrelated things beside its own. Not those of negative controls:
    theirs are empty, and would no longer be."""
    decoys = [item for item in told.items if item["metadata"].get("negative_control")]
    for_decoys = [
        call["arguments"] for item in decoys for call in item["metadata"].get("call_sequence", ())
    ]
    for fixture in told.fixtures:
        result = fixture["result"]
        if fixture["key"] not in for_decoys and isinstance(result, dict) and result.get("ok"):
            result["besides"] = UNRELATED
    return told


def test_a_result_that_says_something_else_moves_no_score(measure, as_told):
    longer = measure(told_beside(demo()))
    assert sum("besides" in str(line["tool_trace"]) for line in longer.results.values()) > 80
    # What is said besides stands under strict keys, also where none was before, and is as many more
    # leaves that an answer could have copied.
    assert {name: without_evidence(scores) for name, scores in longer.scores.items()} == {
        name: without_evidence(scores) for name, scores in as_told.scores.items()
    }
    # By chance the answers would fit no better either.
    exempt = ("copy_ratio", "copy_ratio_ok_rate", "flagged_sample_rate")
    assert totals(longer, *exempt) == totals(as_told, *exempt)
    unsure = sum(
        count_less_sure(before["statements"], longer.scores[name]["statements"])
        for name, before in as_told.scores.items()
    )
    flagged = [one.report["metrics"]["flagged_sample_rate"] for one in (as_told, longer)]
    assert flagged[0]["numerator"] - flagged[1]["numerator"] == unsure == 1


def count_less_sure(before, after):
    """Every statement keeps its place and its label. Among more numbers, one that is a digit away
    is likelier to be there by chance: `misread` may give way to `value`, and nothing else."""
    fewer = 0
    for one, other in zip(before, after, strict=True):
        gave_way = (one["rule"], other["rule"]) == ("misread", "value")
        names = ("start", "end", "label") if gave_way else one.keys() - {"because"}
        assert all(one[name] == other[name] for name in names)
        fewer += gave_way
    return fewer


def test_one_more_served_call_moves_no_grounding(as_told):
    """The call itself is an extra one, so only what is said about spans is compared."""
    for line in as_told.results.values():
        extra = {"name": "web.search", "arguments": {"q": "qophyx"}, "result": UNRELATED, "turn": 1}
        for place in (0, len(line["tool_trace"])):
            trace = [*line["tool_trace"][:place], extra, *line["tool_trace"][place:]]
            item = {"prompt": line["prompt"], "metadata": line["metadata"]}
            again = callmark.score_item(item, line["model_output"], trace, turns=line["turns"])
            assert of_grounding(again) == of_grounding(line["scores"]), line["sample_id"]


def turned(value):
    """The same JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [turned(entry) for entry in value]
    return value


@pytest.mark.parametrize("extractor", few(["claims", "marker"]))
def test_the_order_of_json_keys_does_not_matter(measure, tmp_path_factory, extractor):
    """Of results, fixture keys, arguments, metadata and header."""
    as_told = run_demo(tmp_path_factory.mktemp(extractor), span_extractor=extractor)
    told = Told(*map(turned, demo()))
    assert list(told.items[0]) != list(demo().items[0])
    other = measure(told, span_extractor=extractor)
    assert without(other.scores, "matches") == without(as_told.scores, "matches")
    assert totals(other, "first") == totals(as_told, "first")


def test_the_order_of_calls_within_a_turn_does_not_matter(measure, as_told):
    """They are made at once. Where each match points to moves along with its call."""
    told = demo()
    moved = 0
    for answer in told.answers:
        calls = answer["tool_trace"]
        backwards = calls[::-1]
        answer["tool_trace"] = sorted(backwards, key=lambda call: call["turn"])
        moved += answer["tool_trace"] != calls
    assert moved >= 10
    other = measure(told)
    places = ("matches", "call", "because", "arguments")
    assert without(other.scores, *places) == without(as_told.scores, *places)
    assert totals(other, "first") == totals(as_told, "first")


def rewritten(told: Told, rewrite) -> Told:
    """The answers in another spelling, the byte ranges of their turns moved along; the items ask
    for a normalised reading."""
    for item in told.items:
        item["metadata"] |= {"text_norm": "NFC", "line_endings": "LF"}
    for answer in told.answers:
        data, text, turns = answer["model_output"].encode(), b"", []
        for turn in answer["turns"]:
            piece = rewrite(data[turn["start"] : turn["end"]].decode()).encode()
            text += b"\n" if text and piece else b""
            turns.append({"start": len(text), "end": len(text) + len(piece)})
            text += piece
        answer["model_output"], answer["turns"] = text.decode(), turns
    return told


@pytest.mark.slow
@pytest.mark.parametrize("extractor", ["marker", "claims"])
@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: text.replace("\n", "\r\n"),
    ],
    ids=["NFD", "CRLF"],
)
def test_spelling_does_not_matter_where_the_item_asks_for_nfc_and_lf(measure, rewrite, extractor):
    """Offsets included: they refer to the normalised text, which is what the results hold."""
    told = rewritten(demo(), lambda text: unicodedata.normalize("NFC", text))
    respelt = rewritten(demo(), rewrite)
    changed = sum(one != other for one, other in zip(told.answers, respelt.answers, strict=True))
    assert changed >= 10
    plain, other = (measure(one, span_extractor=extractor) for one in (told, respelt))
    assert other.scores == plain.scores
    assert totals(other) == totals(plain)


@pytest.mark.parametrize("extractor", few(["claims", "marker"]))
def test_strict_is_never_more_than_lax(tmp_path, extractor):
    measured = run_demo(tmp_path, span_extractor=extractor)
    for name, scores in measured.scores.items():
        for number in ("precision", "recall", "f1", "grounded", "found"):
            assert scores["strict"][number] <= scores["lax"][number], name
        assert all(span["lax"] or not span["strict"] for span in scores["spans"]), name


@pytest.fixture(scope="module")
def said_and_served(as_told):
    """Every span of the demo's answers, and every served result; own results come first."""
    spans = []
    for line in as_told.results.values():
        data = line["model_output"].encode()
        own = [entry["result"] for entry in line["tool_trace"] if entry["status"] == "ok"]
        for span in line["scores"]["spans"]:
            text = data[span["start"] : span["end"]].decode()
            spans.append((text, own, line["metadata"].get("locale")))
    return spans, [result for _, own, _ in spans for result in own]


@SOME
@given(data=st.data())
def test_more_evidence_never_lowers_lax_grounding_and_less_never_raises_it(said_and_served, data):
    spans, results = said_and_served
    text, own, locale = data.draw(st.sampled_from(spans))
    others = data.draw(st.lists(st.sampled_from(results), max_size=3))
    everything = data.draw(st.permutations([*own, *others]))
    kept = data.draw(st.lists(st.booleans(), min_size=len(everything), max_size=len(everything)))
    fewer = [result for result, keep in zip(everything, kept, strict=True) if keep]
    lax = {
        size: callmark.ground(text, served, locale=locale)["lax"]
        for size, served in (("fewer", fewer), ("all", everything))
    }
    assert lax["fewer"] <= lax["all"]


def test_without_one_of_its_results_no_span_is_grounded_better(as_told):
    """As the pipeline sees it: calls with their arguments, turns and user messages. A result that
    goes takes nothing but its evidence with it, so an empty one stands in its place."""
    lowered = 0
    for line in as_told.results.values():
        item = {"prompt": line["prompt"], "metadata": line["metadata"]}
        for gone, entry in enumerate(line["tool_trace"]):
            if entry["status"] != "ok":
                continue
            trace = [*line["tool_trace"]]
            trace[gone] = {**entry, "result": {}}
            less = callmark.score_item(item, line["model_output"], trace, turns=line["turns"])
            pairs = zip(less["spans"], line["scores"]["spans"], strict=True)
            assert all(one["lax"] <= other["lax"] for one, other in pairs), line["sample_id"]
            assert less["lax"]["f1"] <= line["scores"]["lax"]["f1"], line["sample_id"]
            lowered += less["lax"]["f1"] < line["scores"]["lax"]["f1"]
    assert lowered > 50
