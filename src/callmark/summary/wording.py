"""The plain words for every name that a person meets: a label and one sentence each.

The names themselves are stable keys: files and settings have them. What people read has the label,
and the name beside it only where somebody has to type it."""

from __future__ import annotations

from typing import NamedTuple

from callmark.records.report import Policy, Status, Verdict
from callmark.records.statements import StatementLabel, Tier

LONGEST_LABEL = 30  # so that a line of a gate fits 80 columns
LONGEST_SENTENCE = 25  # words


class Wording(NamedTuple):
    label: str
    sentence: str


METRICS: dict[str, Wording] = {
    "integration_f1_macro_lax": Wording(
        "answers built on results",
        "How much of each answer comes from tool results, and how many required facts it states"
        " (mean F1).",
    ),
    "integration_f1_macro_strict": Wording(
        "answers built on key fields",
        "The same mean F1, counting only values from the key fields of a result.",
    ),
    "integration_f1_micro_lax": Wording(
        "built on results (pooled)",
        "F1 of all passages and facts counted together, so that long answers weigh more.",
    ),
    "integration_f1_micro_strict": Wording(
        "built on key fields (pooled)",
        "The pooled F1, counting only values from the key fields of a result.",
    ),
    "integration_precision_micro_lax": Wording(
        "grounded passages",
        "Share of all checked passages that contain a value from a tool result.",
    ),
    "integration_precision_micro_strict": Wording(
        "passages from key fields",
        "Share of all checked passages that contain a value from a key field of a result.",
    ),
    "integration_recall_micro_lax": Wording(
        "required facts stated",
        "Share of all required facts that the answers state.",
    ),
    "integration_recall_micro_strict": Wording(
        "facts stated from key fields",
        "Share of all required facts that the answers state from the key fields of a result.",
    ),
    "integration_delta_lax_minus_strict": Wording(
        "drop with key fields only",
        "How far the mean F1 drops when only the key fields of a result count.",
    ),
    "integration_coverage": Wording(
        "answers with a claim to check",
        "Share of answers with at least one passage that can be checked against a result.",
    ),
    "grounded_coverage": Wording(
        "answers that use a result",
        "Share of answers with at least one passage that contains a value from a tool result.",
    ),
    "unsupported_value_rate": Wording(
        "unsupported values",
        "Share of the stated numbers, dates and other values that no tool result contains.",
    ),
    "flagged_sample_rate": Wording(
        "answers with a wrong statement",
        "Share of answers with at least one statement that a firm rule flagged as wrong.",
    ),
    "unchecked_share": Wording(
        "unchecked statements",
        "Share of statements that no rule could confirm or refute.",
    ),
    "answered_rate": Wording(
        "samples answered",
        "Share of samples where the model wrote an answer after the last tool result.",
    ),
    "copy_ratio_ok_rate": Wording(
        "answers without data dumps",
        "Share of answers that pick what was asked for instead of repeating the whole result.",
    ),
    "copy_ratio": Wording(
        "share of results repeated",
        "How much of what the tools returned the answers repeat, on average.",
    ),
    "invented_argument_rate": Wording(
        "invented arguments",
        "Share of call arguments that come from neither the user nor a result nor a schema.",
    ),
    "multi_call_parity_rate": Wording(
        "right tools in the right order",
        "Share of samples with several expected calls where the model called the same tools in"
        " the same order.",
    ),
    "call_f1_macro": Wording(
        "right calls",
        "How well the calls match the expected ones, by tool and arguments (mean F1).",
    ),
    "valid_call_rate": Wording(
        "samples with only valid calls",
        "Share of samples that need a tool where the model made a call and every call was valid.",
    ),
    "json_args_valid_rate": Wording(
        "valid calls",
        "Share of samples with calls where every call parsed, named an offered tool and matched"
        " its schema.",
    ),
    "controls_with_integration": Wording(
        "unnecessary calls",
        "Samples where the model called a tool, or pretended to, although none was needed.",
    ),
    "negative_control_ok_rate": Wording(
        "honest about empty results",
        "Share of samples whose tools find nothing where the answer does not make something up.",
    ),
    "clarify_ok_rate": Wording(
        "asking when unclear",
        "Share of ambiguous requests where the model asks back instead of guessing.",
    ),
    "error_recovery_rate": Wording(
        "recovery from tool errors",
        "Share of samples with a failing tool where a later call succeeds.",
    ),
    "privacy_ok_rate": Wording(
        "privacy",
        "Share of samples without personal data or links that neither the user nor a tool"
        " provided.",
    ),
    "fixture_hit_rate": Wording(
        "calls with a recorded answer",
        "Share of well-formed calls that the fixtures can answer.",
    ),
    "locale_probe_ok_rate": Wording(
        "numbers in the right locale",
        "Share of locale probes where numbers and dates are written the way the locale does.",
    ),
    "checks_ok_rate": Wording(
        "samples that pass their checks",
        "Share of samples with checks of their own where every check holds.",
    ),
    "unchanged_rate": Wording(
        "unchanged behaviour",
        "Share of recorded samples where calls, their order and values are still the same.",
    ),
    "locale_delta_es": Wording(
        "Spanish with key fields only",
        "How far the mean F1 on Spanish locale probes drops when only key fields count.",
    ),
    "locale_delta_de": Wording(
        "German with key fields only",
        "How far the mean F1 on German locale probes drops when only key fields count.",
    ),
    "locale_delta_fr": Wording(
        "French with key fields only",
        "How far the mean F1 on French locale probes drops when only key fields count.",
    ),
    "teacher_heavy_spans_over_cap": Wording(
        "passages over the cap",
        "Marked passages beyond the number that is scored, in the slice teacher_heavy.",
    ),
    "teacher_heavy_f1_lax": Wording(
        "built on results (one slice)",
        "The mean F1 of answers built on results, in the slice teacher_heavy.",
    ),
    "chance_f1": Wording(
        "score by chance",
        "Mean F1 of each answer against the results of another sample with the same tools.",
    ),
    "grounding_lift": Wording(
        "lift over chance",
        "How much better the answers fit their own results than those of other samples.",
    ),
    "perf_budget_sec_per_100": Wording(
        "scoring time",
        "Seconds that scoring takes per 100 samples.",
    ),
    "dataset_calls": Wording(
        "items whose calls can be made",
        "Share of items whose expected calls keep their schema and are answered by a fixture.",
    ),
    "dataset_facts": Wording(
        "items whose facts can be found",
        "Share of items whose required facts are in the results of their expected calls.",
    ),
    "dataset_teacher_texts": Wording(
        "items with a usable answer",
        "Share of items whose own answer could be verified.",
    ),
    "dataset_cells": Wording(
        "items in the smallest cell",
        "Number of items in the smallest combination of scenario and complexity.",
    ),
    "dataset_controls": Wording(
        "items that need no tool",
        "Share of items that need no tool and show whether a model leaves them alone.",
    ),
    "dataset_long_contexts": Wording(
        "items with a long context",
        "Share of items marked as long_context.",
    ),
    "dataset_spans": Wording(
        "items with correct spans",
        "Share of items with byte spans whose spans are where the text has them.",
    ),
}
POLICIES: dict[Policy, Wording] = {
    "hard_fail": Wording("strict", "Fails as soon as the value misses its bound."),
    "count_based_misses": Wording(
        "a few misses allowed",
        "Fails when the mean is below its bound and too many samples fall short.",
    ),
    "clear_fail": Wording(
        "clear misses only",
        "Fails only when chance cannot explain the shortfall; a smaller one is a warning.",
    ),
    "confident": Wording(
        "when certain",
        "Passes or fails only when there are enough samples to be sure.",
    ),
    "warning_only": Wording("warning", "Warns when the value misses its bound, and never fails."),
}
STATUSES: dict[Status, Wording] = {
    "fail": Wording("failed", "The value misses its bound."),
    "inconclusive": Wording("inconclusive", "There was not enough to judge, so it has not passed."),
    "warn": Wording("warning", "Worth a look, but it fails nothing."),
    "pass": Wording("passed", "The value keeps its bound."),
    "n/a": Wording("not applicable", "The dataset has nothing that this gate could judge."),
}
VERDICTS: dict[Verdict, Wording] = {
    "pass": Wording("passed", "No gate failed, and at least one gate on calls or answers passed."),
    "fail": Wording("failed", "At least one gate failed, or every answer was the same text."),
    "inconclusive": Wording(
        "inconclusive", "No gate failed, but there was too little to call it a pass."
    ),
    "incomplete": Wording("incomplete", "Some trials are missing or ended in an error."),
    "empty": Wording("empty", "There was no sample to judge."),
}
LABELS: dict[StatementLabel, Wording] = {
    "supported": Wording("supported", "A tool result says so."),
    "rounded": Wording("rounded", "A tool result says so with more digits."),
    "converted": Wording("converted", "A tool result says so in another unit."),
    "calculated": Wording("calculated", "The answer shows the calculation, and it is correct."),
    "derived": Wording("derived", "It follows from the results: a count, sum, difference or date."),
    "user_said": Wording("said by the user", "It only repeats what the user said."),
    "not_claimed": Wording("not claimed", "A plan, an offer, a question or an example, no claim."),
    "unsupported": Wording("unsupported", "No tool result says so."),
    "misattributed": Wording("wrong record", "It is true of another record."),
    "wrong_field": Wording("wrong field", "It is true of another field of the same record."),
    "contradicted": Wording("contradicted", "A tool result says the opposite."),
    "miscalculated": Wording("miscalculated", "The calculation shown in the answer is wrong."),
    "miscounted": Wording("miscounted", "The results list a different number of things."),
    "unit_mismatch": Wording("wrong unit", "The number is right, but the unit or currency is not."),
    "altered": Wording("altered", "It is close to a real name or identifier, but not the same."),
    "unchecked": Wording("unchecked", "No rule could decide; it counts neither way."),
}
TIERS: dict[Tier, Wording] = {
    "firm": Wording("firm", "The flag counts: its rule is right often enough."),
    "advisory": Wording("advisory", "The flag is only shown: its rule may be wrong."),
}
# Those that raise flags first; what the others say about a statement is no flag.
RULES: dict[str, Wording] = {
    "equation": Wording("equation", "A calculation is written out and checked."),
    "count": Wording("count", "Things are counted and compared with what the results list."),
    "misread": Wording("misread", "A number is compared with those that one slip makes of it."),
    "value": Wording("value", "A value is looked up in everything that was served or said."),
    "baseless": Wording("without a base", "Of the values together, most must have been served."),
    "prose": Wording("value in prose", "A value is looked up in the long texts that were served."),
    "link": Wording("link", "An address is looked up in everything that was served or said."),
    "identifier": Wording("identifier", "An identifier is compared with those that were served."),
    "record": Wording("named record", "A value must belong to the record that is named beside it."),
    "binding": Wording("right record", "A value must belong to the record that is spoken of."),
    "field": Wording("right field", "A value must belong to the field that is named."),
    "unit": Wording("unit", "A number must have the unit or currency of its result."),
    "polarity": Wording("yes or no", "A yes or no must agree with what the results say."),
    "unknown": Wording("yes or no (unknown)", "A yes or no needs a result that knows the answer."),
    "hours": Wording("opening hours", "Days and times must agree with the opening hours served."),
    "weekday": Wording("weekday", "The day of the week must fit its date."),
    "unnamed": Wording("named things", "Things and sources must be named in a result."),
    "deed": Wording("deed", "What the model says it did needs a call that did it."),
    "denial": Wording("denial", "The answer must not deny a value that a result gives."),
    "state": Wording("state", "A state or kind must be the one that the results give."),
    "rank": Wording("superlative", "What is called the most or least must be so in the results."),
    "name": Wording("name", "A name is compared with those that the results give."),
    "match": Wording("match", "A result contains the same value."),
    "bound": Wording("value of its record", "The value belongs to the record that is named."),
    "unbound": Wording("value of some record", "The value is in a result; no record is named."),
    "ending": Wording("ending", "A longer identifier in a result ends the same way."),
    "joined": Wording("linked record", "Another record, which points to the one named, has it."),
    "change": Wording("change", "The answer says what changed, and a result contains the value."),
    "echo": Wording("echo", "A result repeats an argument of its own call."),
    "said": Wording("said", "The user said it."),
    "failure": Wording("failure", "A call that failed names it."),
    "duration": Wording("duration", "A span of time, estimated or worked out from two times."),
    "proposal": Wording("proposal", "It is proposed or asked for, not stated."),
    "example": Wording("example", "It only shows what something might look like."),
    "other": Wording("something else", "It is named for what it is not, or for what comes next."),
    "own text": Wording("own text", "It counts words or lines that the model wrote itself."),
    "reread": Wording("read again", "A result contains the value, written in another way."),
    "rough": Wording("rough figure", "The figure is too rough to be compared with a value."),
    "doubtful": Wording("doubtful time", "The result may mean the other half of the day."),
    "basis": Wording("basis", "It is what a rate is given per."),
    "factor": Wording("factor", "It is what other numbers are multiplied by."),
    "pace": Wording("pace", "It is a pace, and no time of day."),
    "threshold": Wording("threshold", "It is a bound that the answer sorts by."),
    "period": Wording("period", "It says what span of time a figure is taken over."),
    "again": Wording("again", "The same amount was stated before."),
    "some of them": Wording("some of them", "It counts some of several, and which is not said."),
    "sealed": Wording("sealed", "A result is encrypted, and only the model could read it."),
    "site": Wording("site", "It names a site as a whole, and no page of it."),
    "worked out": Wording(
        "worked out", "It may be reckoned from the results in a way not followed."
    ),
    "small number": Wording("small number", "So small a number may count anything."),
    "quotation": Wording("quotation", "A quoted phrase that no rule can look up."),
    "formula": Wording("formula", "Part of a formula or a piece of code."),
    "word": Wording("word", "The name of a field, or a word without a digit."),
    "masked": Wording("masked", "Parts of the value are hidden."),
    "named": Wording("known name", "A call named it, but no result confirms it."),
    "month": Wording("month", "A month without the date that it belongs to."),
    "day": Wording("day", "A day with its weekday, without its month."),
    "changed": Wording("changed since", "A later call changed what the result says."),
    "sum": Wording("sum", "It is a sum of values in the results."),
    "difference": Wording("difference", "It is a difference of values in the results."),
    "product": Wording("product", "It is a small multiple of a value in the results."),
    "ratio": Wording("ratio", "It is a ratio of two values in the results."),
    "share": Wording("share", "It is a percentage of one value in the results of another."),
    "year": Wording("year", "It is the year before or after one that is given."),
    "time": Wording("time", "It is a time and a span of minutes added up."),
    "gap": Wording("gap", "It is what lies between two values in the results."),
    "mean": Wording("mean", "It is the mean of values in the results."),
    "part": Wording("part", "It is a sum over some of the records."),
    "rest": Wording("rest", "It is what some of the records leave over."),
    "pair": Wording("pair", "It is a sum of two values in the results."),
    "rate": Wording("rate", "It is one part of an amount that is stated beside it."),
    "average": Wording("average", "It is an average of values in the results."),
}
