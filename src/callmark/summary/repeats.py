"""Several trials of one sample: how often each sample passes, and by how much each metric moves
though nothing changed."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence

from callmark.records.report import FAILING_CAP, Noise, Repeat, SampleRate
from callmark.records.samples import Kind
from callmark.stats.columns import REMEMBERED, Column, is_there
from callmark.stats.estimates import Z_TWO_SIDED, SampledValue, linear_weights, wilson
from callmark.summary.failing import PASSING_F1
from callmark.summary.gates import is_below
from callmark.summary.metrics import Definition, Subset, cluster_labels, defined_parts, metric_of
from callmark.summary.trials import KINDS, NOT_APPLICABLE, Samples, Trials

# kind -> (column, the value that passes)
_RIGHT: dict[Kind, tuple[str, int]] = {
    "control": ("contaminated", 0),
    "negative_control": ("negative_ok", 1),
    "clarify": ("clarify_ok", 1),
}

# A trial in which one of these is 0 is not right, whatever its kind.
_MUST_HOLD = ("privacy_ok", "checks_ok", "args_valid", "parity", "answered", "copy_ok")


def repeat_of(trials: Trials, whole: Subset, most: int, f1_bound: float) -> Repeat:
    """`most`: trials of a sample, more than one."""
    samples, seed = whole.samples, whole.seed
    shares, full, flips, at_full = array("d"), array("b"), array("b"), array("I")
    listed: list[SampleRate] = []
    steady = flaky = broken = 0
    for at, (hits, tried) in enumerate(pass_counts(trials, samples, f1_bound)):
        shares.append(hits / tried)
        steady += hits == tried
        flaky += 0 < hits < tried
        broken += hits == 0
        if hits < tried and len(listed) < FAILING_CAP:
            listed.append(_rate(samples.id_at(at), hits, tried))
        if tried == most:
            at_full.append(at)
            full.append(hits == most)
            flips.append(0 < hits < most)
    everyone = cluster_labels(samples, range(len(samples)))
    complete = cluster_labels(samples, at_full)
    none, no_whole = "no sample has a score", f"no sample has {most} scored trials"
    return Repeat(
        trials=most,
        pass_at_1=metric_of(SampledValue("rate", (shares,), everyone, True), none, seed),
        pass_hat_k=metric_of(SampledValue("rate", (full,), complete), no_whole, seed),
        flip_share=metric_of(SampledValue("rate", (flips,), complete), no_whole, seed),
        steady=steady,
        flaky=flaky,
        broken=broken,
        steady_ci_95=wilson(most, most, Z_TWO_SIDED),
        samples=tuple(listed),
        noise=noise_of(trials, whole),
    )


def pass_counts(
    trials: Trials, samples: Samples, f1_bound: float = PASSING_F1
) -> Iterator[tuple[int, int]]:
    """Of each sample, how many of its scored trials pass, and how many there are."""
    passed = _passes(trials, f1_bound)
    for rows in samples.trial_rows():
        yield sum(passed[row] for row in rows), len(rows)


def _rate(sample_id: str, hits: int, tried: int) -> SampleRate:
    return SampleRate(
        sample_id=sample_id,
        passed=hits,
        trials=tried,
        rate=hits / tried,
        ci_95=wilson(hits, tried, Z_TWO_SIDED),
    )


def _passes(trials: Trials, f1_bound: float) -> bytearray:
    f1, calls, marker = (trials.column(name) for name in ("f1_lax", "call_f1", "marker"))
    presence, privacy = trials.column("presence"), trials.column("privacy_ok")
    faults = [trials.column(name) for name in _MUST_HOLD]
    flagged = trials.column("flagged")
    right = {kind: (trials.column(name), value) for kind, (name, value) in _RIGHT.items()}
    passed = bytearray(trials.scored)
    for row, code in enumerate(trials.kinds()):
        kind = KINDS[int(code)]
        column, value = right.get(kind, (privacy, 1))
        is_right = column[row] == value
        if kind == "eligible" and (marker[row] or not presence[row]):
            is_right = not is_below(f1[row], f1_bound)
        elif kind == "eligible":
            is_right = calls[row] < 0 or not is_below(calls[row], PASSING_F1)
        is_right = is_right and flagged[row] != 1
        passed[row] = is_right and all(column[row] != 0 for column in faults)
    return passed


def noise_of(trials: Trials, whole: Subset) -> dict[str, Noise]:
    """Of every metric that a sample has in two trials or more. The samples are held fixed: what
    moves is what the model does with them, and each sample moves by itself."""
    spans = list(whole.samples.trial_rows())
    found = {}
    for name, (part, definition) in defined_parts(whole).items():
        noise = _noise(trials, part, definition, spans)
        if noise is not None:
            found[name] = noise
    return found


def _noise(
    trials: Trials, part: Subset, definition: Definition, spans: Sequence[range]
) -> Noise | None:
    observed = part.observe(definition)
    # A ratio is taken as linear in the counts of one sample, as its interval takes it.
    weights = linear_weights(observed)
    if weights is None:
        return None
    if definition.made == "difference":
        weights = [1.0, -1.0]
    columns = [trials.column(name) for name in definition.columns]
    known: dict[tuple[int, ...], float | None] = {}  # most samples have the numbers of many others
    found = array("d")
    for at in part.behind(definition):
        rows = spans[at]
        codes = (rows.start,) if definition.added else trials.codes_of(rows)
        if codes not in known:
            if len(known) == REMEMBERED:
                known.clear()
            known[codes] = _variance(definition, columns, weights, rows)
        variance = known[codes]
        if variance is not None:
            found.append(variance)
    if not found:
        return None
    sd = math.sqrt(math.fsum(found) / len(found) / observed.n)
    if definition.made == "count":
        sd *= observed.n
    return Noise(sd=sd, floor=Z_TWO_SIDED * math.sqrt(2) * sd, samples=len(found))


def _variance(
    definition: Definition, columns: Sequence[Column], weights: Sequence[float], rows: range
) -> float | None:
    """By how much the trials of one sample differ; None: fewer than two have the metric."""
    applying = [row for row in rows if len(weights) > 1 or _applies(definition, columns[0][row])]
    if len(applying) < 2:
        return None
    errors = [
        math.fsum(weight * column[row] for weight, column in zip(weights, columns, strict=True))
        for row in applying
    ]
    mean = math.fsum(errors) / len(errors)
    return math.fsum((one - mean) ** 2 for one in errors) / (len(errors) - 1)


def _applies(definition: Definition, number: float) -> bool:
    return is_there(number) if definition.added else number != NOT_APPLICABLE
