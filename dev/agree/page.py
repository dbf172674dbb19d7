"""`docs/agreement.md`: what was measured, false alarms first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from callmark.records.statements import SourceCounts, earned_tier, unearned_tiers
from callmark.stats.estimates import Z_TWO_SIDED, wilson
from dev.agree.counts import Agreement, unsupported_now
from dev.agree.material import HELD_BACK, OTHER, TUNED
from dev.agree.measuring import LabelledCounts, RewardCounts, area_under_curve
from dev.agree.mutations import KINDS
from dev.agree.planting import PlantedCounts
from dev.agree.written import NAMES, WrittenCounts

HALVES = (TUNED, OTHER)
HELD = frozenset(one.name for one in HELD_BACK)
INTRO = """\
# How far the rules agree with people

Written by `make agree`; `agreement.json` beside it has the counts. Scorer version {version},
rules `{sha}`.

What raises a flag is a rule, and a rule can be wrong. This page says how often, on answers that
real models gave. Every source is cut in two by a hash: rules were written while looking at the
**tuned** half, so it proves nothing; the **other** half is the figure that counts. All of it but
the written episodes is English. Shares come with their counts, and where it matters with a 95 %
Wilson interval.

- **airline, retail, retail_2**: customer-service episodes of tau-bench and tau2-bench. A reward
  of 1 says that the episode changed the database as it should have, not that every sentence was
  true; a reward below 1 does not say that a sentence was false.
- **data2txt, qa, summary**: RAGTruth, answers in which people marked what the source does not
  carry. They missed much (of the places where an answer calls a business cozy or trendy against
  its record, about four in ten are not marked), so some of what is called a false alarm here is
  none, and an unmarked answer is not surely right.
- **written**: episodes in {domains} domains (hotels, lab values, payroll, CI runs, contracts …),
  right and wrong answers to them, written by authors who had not seen the rules; the
  authors are language models. One in eight answers is German, Spanish or French. Rules were
  mended while looking at eight of the files (*seen*). The fifth of these, 78 episodes, has long
  analyses in every other one: sums, means and shares by kind over 10 to 40 records. Before a
  rule was mended on it, 55 of its right answers had 363 flags, 5 a firm one; 61 of its 208
  wrong statements were caught then. The sixth and the third of the unseen files are by one author,
  who was asked for results as services send them (amounts in cents, durations in seconds, days
  as keys) and for answers as models write them. Before a rule was mended, 22 of the 40 right
  answers of the sixth had 48 flags, 6 of them firm, and 15 of the 40 of the unseen one had 32; 68
  of 200 and 72 of 199 wrong statements were caught. Before a rule was mended on them, 22 of the
  57 right answers of the seventh had 33 flags and 23 of the 49 of the eighth 62, one of them firm;
  65 of 285 and 52 of 245 wrong statements were caught. In the last of the unseen files, written
  when these two had been opened, 9 of 34 right answers had 21 flags with the rules from before and
  9 have 19 with these; 45 and 48 of 136 wrong statements are caught: what is learnt from one author
  carries over to the next only a little. Of the unseen files only totals were looked
  at, and once the firm flags on right answers, four then:
  `record` is advisory because of three of them, and `misread` is not asked about what may be
  reckoned because of the fourth. When `baseless` was written, the unsupported values of all
  right answers were looked at, those of every other half too: its zero on them is no surprise.
  They ship in `dev/agree/written`.
"""
READ = """\
## Flags that were read blind

In November 2026 every answer with a flag was taken from sources that rules had not been written
for: the other halves of qa and summary (32 answers), nemo_gym (3) and public traces (10, of which
false alarms had been looked at once before); telecom had no flag. One flag of each, chosen by
hash, was read with what was asked and served, shuffled and without rule or label, by two readers.
Both are language models, and of one kind: they agreed on all 45 (κ = 1), which says less than it
would of two people.

| source | right | wrong | unsure |
|---|---|---|---|
| nemo_gym and traces | 9 | 3 | 1 |
| qa, other half | 10 | 5 | 1 |
| summary, other half | 10 | 6 | 0 |
| **all** | 29 of 45 (0.64) | 14 | 2 |
| firm ones among them | 4 of 4 | 0 | 0 |

Sixty were wanted; these sources have no more (the next section has eighty). What they found wrong
was mended afterwards where it was of a kind (weekdays that the source itself names, decades,
degrees that are converted by custom, ordinals, `7. May` in a list), so these answers are no proof
any more, and the figures of the other halves of qa and summary on this page are those of answers
that were looked at.
"""
SMALL = """\
## Mistakes of a small model

In November 2026 SmolLM2-135M-Instruct, the model that the tests fine-tune, answered 657 questions
about results that no rule had been written for: bank accounts, cards, payments, calendars, e-mail,
files, hotels, flights, shares, attendance and more, from the public data of two benchmarks. Its
mistakes are real ones, and many: language models who read every answer marked 916 places in 503 of
the 657. The data is not ours, so neither answers nor marks ship, and this section is typed.

**Read blind**: one flag of each of 80 answers in 18 domains, and 40 statements with a good label,
shuffled, without rule or label, by two readers (language models) who did not know of each other.
They agreed on 116 of 120 (κ = 0.89). Both objected to 76 of 80 flags (0.95), to 9 of 10 firm ones,
and to 20 of the 40 statements that had a good label: so much a small model gets wrong with values
that were served. Precision on such answers flatters; what is missed does not.

**Marked**, before and after rules were written while looking at the tuned half (*now* is that
session's end; later rules were not measured on these answers):

| | tuned, before | tuned, now | **other**, before | **other**, now |
|---|---|---|---|---|
| wrong places with a flag near | 0.30 (128 of 427) | 0.39 (166) | 0.26 (128 of 489) | 0.29 (141) |
| flags near a wrong place | 98 of 100 | 133 of 135 | 83 of 84 | 92 of 93 |
| good labels on a wrong place | 107 of 237 | 88 of 218 | 92 of 205 | 89 of 202 |
| answers without a mark that are flagged | 0 of 69 | 0 of 69 | 1 of 85 | 1 of 85 |

The halves are apart by domain (315 and 342 answers); *near* is within 60 characters. The rules
(what is told of somebody who has another there, totals that are one of several, superlatives of
values) carried over a little, as ever. Most of what is missed is prose that no field speaks of,
invented things, deeds, and right values of the wrong thing where only the question says which.
"""
OPERANDS = """\
## What numbers were worked out from

Whether a `derived` or `calculated` number rests on the operands that the answer means was read in
November 2026 by a language model, the one that also mended the rules; no person read them. It read
each sentence with the operands that the finding names, and not every result in full. Findings were
drawn by hash, at most one of an answer, with at most 15 written equations. This section is typed.

| answers | right | wrong | unsure |
|---|---|---|---|
| real, tuned halves, before the last mends | 49 of 60 | 9 | 2 |
| real, tuned halves, the same hashes after them | 55 of 60 | 3 | 2 |
| written and seen, right answers, before | 52 of 60 | 6 | 2 |
| written and seen, after | 54 of 60 | 4 | 2 |
| real, **other** halves, read once, at the end | 56 of 60 (0.93) | 2 | 2 |

The first four overlap with what the mends were made on. Most are prices and counts of airline and
retail, because other sources have few such findings: of prose these figures say little. Of the
planted digits, days and times, 19 of 2,348 in the tuned halves and 38 of 2,065 in the others got a
good label by chance arithmetic then (77 and 68 before).
"""
PLANTING = """\
## Mistakes planted in real answers

A clause that had a good label and no flag is made false in one way. Caught: a flag that was not
there before stands in that sentence; firm: one of a firm rule is among them. Other statements of
the same answer should keep their labels: *changed* counts those that did not (a total may
rightly stop coming out when one of its parts is altered). At most {most} of a kind from each
half of each source, chosen by hash; where mutations outnumber statements, several were planted
in one statement, one at a time, and they are not independent.

`_unstated`: the results name no unit or currency, so nobody could know from them. `count_fewer`
may be a true statement about some of the things. `shift_small` are whole numbers below 13. These
four have no bar, and are here because they are what is missed.
"""
LIMITS = """\
## What this does not tell

- Two of three sources of episodes are one shop, and all answers of the airline are one model's.
- Planted mistakes are drawn by a program. Models err in other ways: they leave out, they
  overstate, they write prose that no field speaks of, which stays `unchecked` and never counts
  as a pass.
- The rule of the halves holds for the data, not for the domain: who tuned on one half knows what
  the other is about.
- Labels are noisy in both directions, see above; rewards are about deeds, not about sentences.
- Your answers are not these. `callmark label` and `callmark agree` measure the same on yours:
  [labelling](labelling.md).
"""
FALSE_ALARMS = """\
## False alarms on right answers

Answers in which people marked nothing, episodes with a reward of 1, and answers written as right.
"""
TIERS = """\
## Tiers

A rule is firm if, on at least two sources that it was not tuned on, at least 40 judged flags
give a one-sided 95 % lower bound of 0.75, or at least 0.8 of 200 planted mistakes are caught by
it and at most 0.5 % of right answers (here: unmarked ones, single turns of episodes with a reward
of 1, and written ones) are flagged; and all firm rules together flag at most 2 % of the answers
in which people marked nothing. *Caught by it* leaves out what another rule caught alone.
"""
MARKED = """\
## What people marked

A span is found if a flag touches it; a flag is right if it touches a span.
"""
WRITTEN = """\
## Mistakes that authors wrote

In every episode the author made one statement wrong, the way models err, and did so again with
another statement, about four times. Caught: a flag that the right answer does not have stands at
the wrong words.
"""
REWARDS = """\
## Rewards

Episodes with a flag, by what they were rewarded with. AUC: how often an episode without its
reward has the larger share of flags among what was checked; 0.5 is chance.
"""
UNSUPPORTED = """\
## `unsupported` on the 314 older episodes

How many values nothing carried before there were statements, and how many now; deeds and yes-or-no
fields that are unknown have this label too.
"""
CLOSED = """\
## Domains that no rule was written for

Not opened yet: they are measured once, when the rules are frozen.
"""
OPENED = """\
## Domains that no rule was written for

Opened when the rules were frozen. Both halves are untuned here.
"""


TRAIL = """## Errors that people located: TRAIL

{traces} traces of code agents (GAIA, SWE-bench) in which people marked {errors} errors, each on a
span; {on_turns} of them lie on turns of a model, the others on calls that failed or on tools. Most
are errors of planning, formatting and tool choice, which no rule here looks for: a flag says that
nothing before a turn has what it states. Scored as a log, with `callmark score`.
"""


def document(agreement: Agreement) -> str:
    domains = sum(one.domains for one in agreement.written)
    sha = agreement.rules_sha256[:16]
    blocks = [INTRO.format(version=agreement.scorer_version, sha=sha, domains=domains)]
    blocks += _false_alarms(agreement)
    blocks += _tiers(agreement)
    blocks += _marked(agreement)
    blocks += [READ, SMALL, OPERANDS]
    blocks.append(PLANTING.format(most=max((one.planted for one in agreement.planted), default=0)))
    blocks.append(_planted_table([one for one in agreement.planted if one.source not in HELD]))
    blocks += _planted_by_source(agreement)
    blocks += _written(agreement)
    blocks += _rewards(agreement)
    blocks += _trail(agreement)
    blocks += _unsupported(agreement)
    blocks += _held_back(agreement)
    blocks.append(LIMITS)
    return "\n".join(block.rstrip() + "\n" for block in blocks)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def share(hits: int, total: int) -> str:
    return f"{hits / total:.3f} ({hits} of {total})" if total else "–"


def bounded(hits: int, total: int) -> str:
    if not total:
        return "–"
    low, high = wilson(hits, total, Z_TWO_SIDED)
    return f"{hits / total:.2f} [{low:.2f}, {high:.2f}] ({hits} of {total})"


def _false_alarms(agreement: Agreement) -> Iterator[str]:
    yield FALSE_ALARMS
    rows = [
        (f"{one.source}, unmarked answers", _half(one), share(one.clean_flagged_firm, one.clean),
         share(one.clean_flagged, one.clean), _per(one.flags_on_clean, one.clean))
        for one in agreement.labelled
    ] + [
        (f"{one.source}, reward 1, episodes", _half(one), share(one.flagged_firm, one.episodes),
         share(one.flagged, one.episodes), _per(sum(one.rules.values()), one.episodes))
        for one in agreement.rewards
        if one.reward == 1 and one.source not in HELD
    ] + [
        (NAMES[one.half], _half(one), share(one.flagged_firm, one.answers),
         share(one.flagged, one.answers), _per(one.flags, one.answers))
        for one in agreement.written
    ]  # fmt: skip
    head = ("answers", "half", "with a firm flag", "with any flag", "flags each")
    yield _table(head, rows)


def _half(one: LabelledCounts | RewardCounts | PlantedCounts | WrittenCounts) -> str:
    return "tuned" if one.half == TUNED else "**other**"


def _per(number: int, total: int) -> str:
    return f"{number / total:.2f}" if total else "–"


def _tiers(agreement: Agreement) -> Iterator[str]:
    yield TIERS
    rows = []
    for rule in agreement.rules:
        cells = [f"`{rule.rule}`", f"`{rule.label}`", rule.tier, earned_tier(rule.sources)]
        for tuned in (True, False):
            kept = [one for one in rule.sources if one.tuned is tuned]
            cells += [_sum(kept, "right", "judged"), _sum(kept, "caught", "planted")]
            cells.append(_sum(kept, "flagged", "answers"))
        rows.append(cells)
    head = ["rule", "label", "ships as", "earned"]
    for half in ("tuned", "**other**"):
        head += [f"{half}: right flags", f"{half}: caught by it", f"{half}: right answers flagged"]
    yield _table(head, rows)
    problems = unearned_tiers(agreement, {rule.rule: rule.tier for rule in agreement.rules})
    if problems:
        yield "Not earned:\n\n" + "\n".join(f"- {problem}" for problem in problems) + "\n"


def _sum(sources: Sequence[SourceCounts], hits: str, total: str) -> str:
    return share(
        sum(getattr(one, hits) for one in sources), sum(getattr(one, total) for one in sources)
    )


def _marked(agreement: Agreement) -> Iterator[str]:
    yield MARKED
    head = (
        "source",
        "half",
        "answers",
        "spans found",
        "by firm rules",
        "flags right",
        "firm flags right",
    )
    yield _table(
        head,
        (
            (one.source, _half(one), str(one.answers), bounded(one.found, one.spans),
             share(one.found_firm, one.spans), bounded(one.all_flags.right, one.all_flags.flags),
             bounded(one.firm_flags.right, one.firm_flags.flags))
            for one in agreement.labelled
        ),
    )  # fmt: skip
    yield _by_name("rule", agreement.labelled, lambda one: one.rules.keys(), _rule_cell)
    yield _by_name("label", agreement.labelled, lambda one: one.labels.keys(), _label_cell)
    yield _by_name(
        "kind of span, found", agreement.labelled, lambda one: one.types.keys(), _type_cell
    )


def _rule_cell(one: LabelledCounts, name: str) -> str:
    found = one.rules.get(name)
    return share(found.right, found.flags) if found else "–"


def _label_cell(one: LabelledCounts, name: str) -> str:
    found = one.labels.get(name)
    return share(found.right, found.flags) if found else "–"


def _type_cell(one: LabelledCounts, name: str) -> str:
    total, found = one.types.get(name, (0, 0))
    return share(found, total)


def _by_name(
    what: str,
    counts: Sequence[LabelledCounts],
    names_of: Callable[[LabelledCounts], Iterable[str]],
    cell: Callable[[LabelledCounts, str], str],
) -> str:
    names = sorted({name for one in counts for name in names_of(one)})
    head = [what, *(f"{one.source}, {_half(one)}" for one in counts)]
    return _table(head, ([name, *(cell(one, name) for one in counts)] for name in names))


def _planted_table(planted: Sequence[PlantedCounts]) -> str:
    head = ["kind"]
    for name in ("tuned", "**other**"):
        head += [f"{name}: caught", f"{name}: firm", f"{name}: others changed"]
    rows = []
    for kind in KINDS:
        row = [kind]
        for half in HALVES:
            kept = [one for one in planted if one.kind == kind and one.half == half]
            total = sum(one.planted for one in kept)
            statements = sum(one.statements for one in kept)
            caught = share(sum(one.caught for one in kept), total)
            row.append(caught if statements == total else f"{caught}, in {statements} statements")
            row.append(_ratio(sum(one.firm for one in kept), total))
            row.append(share(sum(one.changed for one in kept), sum(one.untouched for one in kept)))
        rows.append(row)
    return _table(head, rows)


def _ratio(hits: int, total: int) -> str:
    return f"{hits / total:.3f}" if total else "–"


def _planted_by_source(agreement: Agreement) -> Iterator[str]:
    yield "The other half alone, by source, and which rules found them:\n"
    kept = [one for one in agreement.planted if one.half == OTHER and one.source not in HELD]
    rows = [
        (one.kind, one.source, share(one.caught, one.planted), _ratio(one.firm, one.planted),
         ", ".join(f"{rule} {number}" for rule, number in one.rules.items()) or "–")
        for kind in KINDS for one in kept if one.kind == kind
    ]  # fmt: skip
    yield _table(("kind", "source", "caught", "firm", "rules"), rows)


def _written(agreement: Agreement) -> Iterator[str]:
    yield WRITTEN
    kinds = sorted({one.kind for counts in agreement.written for one in counts.variants})
    rows = [
        [kind or "**all**", *(cell for one in agreement.written for cell in _variant(one, kind))]
        for kind in (*kinds, None)
    ]
    head = ["kind"]
    for counts in agreement.written:
        head += [f"{_half(counts)}: caught", f"{_half(counts)}: firm", f"{_half(counts)}: rules"]
    yield _table(head, rows)


def _variant(counts: WrittenCounts, kind: str | None) -> Iterator[str]:
    """The cells of one kind of mistake in one file; None: of all of them."""
    kept = [one for one in counts.variants if kind in (None, one.kind)]
    planted = sum(one.planted for one in kept)
    yield share(sum(one.caught for one in kept), planted)
    yield _ratio(sum(one.firm for one in kept), planted)
    rules = sum((Counter(one.rules) for one in kept), Counter[str]())
    yield ", ".join(f"{rule} {number}" for rule, number in sorted(rules.items())) or "–"


def _rewards(agreement: Agreement) -> Iterator[str]:
    yield REWARDS
    kept = [one for one in agreement.rewards if one.source not in HELD]
    yield _reward_table(kept)


def _trail(agreement: Agreement) -> Iterator[str]:
    found = agreement.trail
    if found is None:
        return
    yield TRAIL.format(traces=found.traces, errors=found.errors, on_turns=found.on_turns)
    by_chance = share(found.turns_marked, found.turns)
    rows = [
        (
            "annotated errors that lie where a flag lies",
            share(found.errors_met_firm, found.errors),
            share(found.errors_met, found.errors),
        ),
        (
            "flags that lie on an annotated span",
            share(found.firm_met, found.firm),
            share(found.flags_met, found.flags),
        ),
        ("turns with an annotated error: so much by chance", by_chance, by_chance),
    ]
    yield _table(("", "firm flags", "all flags"), rows)


def _reward_table(rewards: Sequence[RewardCounts]) -> str:
    rows = []
    for source in dict.fromkeys(one.source for one in rewards):
        for half in HALVES:
            by_reward = {
                one.reward: one for one in rewards if one.source == source and one.half == half
            }
            cells = [source, "tuned" if half == TUNED else "**other**"]
            if source in HELD:
                cells[1] = "first" if half == TUNED else "second"
            for reward in (1, 0):
                one = by_reward.get(reward)
                cells += ["–", "–"] if one is None else [
                    share(one.flagged_firm, one.episodes), share(one.flagged, one.episodes)
                ]  # fmt: skip
            for at in (1, 0):
                wrong, right = (
                    [scores[at] for scores in by_reward[reward].scores]
                    if reward in by_reward
                    else []
                    for reward in (0, 1)
                )
                area = area_under_curve(wrong, right)
                cells.append("–" if area is None else f"{area:.2f}")
            rows.append(cells)
    head = (
        "source",
        "half",
        "reward 1, firm",
        "reward 1, any",
        "less, firm",
        "less, any",
        "AUC firm",
        "AUC any",
    )
    return _table(head, rows)


def _unsupported(agreement: Agreement) -> Iterator[str]:
    yield UNSUPPORTED
    before = agreement.unsupported_before
    values, every = unsupported_now(agreement, ["value"]), unsupported_now(agreement)
    rows = [(name, str(before[name]), str(values[name]), str(every[name])) for name in before]
    sums = (str(sum(one[name] for name in before)) for one in (before, values, every))
    head = ("source", "before", "now, values", "now, every rule with this label")
    yield _table(head, [*rows, ("both", *sums)])


def _held_back(agreement: Agreement) -> Iterator[str]:
    rewards = [one for one in agreement.rewards if one.source in HELD]
    planted = [one for one in agreement.planted if one.source in HELD]
    if not rewards and not planted:
        yield CLOSED
        return
    yield OPENED
    yield _reward_table(rewards)
    yield _planted_table(planted)
