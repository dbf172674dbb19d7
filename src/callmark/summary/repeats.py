"""What repeated trials show: how often a sample passes, and whether it always does.

A trial passes if its answer leaks nothing (privacy), no call has invalid arguments, the calls are
the expected ones where several are expected, its checks hold, and it does what its kind asks for:
an eligible sample's lax F1 reaches the bound of the F1 gate, a control stays clean, a negative
control and a clarify sample are answered rightly."""

from __future__ import annotations

from array import array

from callmark.records.report import Repeat
from callmark.records.samples import Kind
from callmark.stats.estimates import SampledValue
from callmark.summary.gates import is_below
from callmark.summary.metrics import cluster_labels, metric_of
from callmark.summary.trials import KINDS, Samples, Trials

PASSING_F1 = 0.90  # where no F1 gate is in force

# kind -> (column, the value that passes)
_RIGHT: dict[Kind, tuple[str, int]] = {
    "control": ("contaminated", 0),
    "negative_control": ("negative_ok", 1),
    "clarify": ("clarify_ok", 1),
}


def repeat_of(
    trials: Trials, samples: Samples, most: int, f1_bound: float, seed: int
) -> Repeat | None:
    """None where every sample has one trial."""
    if most < 2:
        return None
    passed = _passes(trials, f1_bound)
    shares, whole, flips, at_whole = array("d"), array("b"), array("b"), array("I")
    for at, rows in enumerate(samples.trial_rows()):
        hits = sum(passed[row] for row in rows)
        shares.append(hits / len(rows))
        if len(rows) == most:
            at_whole.append(at)
            whole.append(hits == most)
            flips.append(0 < hits < most)
    everyone = cluster_labels(samples, range(len(samples)))
    complete = cluster_labels(samples, at_whole)
    none, no_whole = "no sample has a score", f"no sample has {most} scored trials"
    return Repeat(
        trials=most,
        pass_at_1=metric_of(SampledValue("rate", (shares,), everyone, True), none, seed),
        pass_hat_k=metric_of(SampledValue("rate", (whole,), complete), no_whole, seed),
        flip_share=metric_of(SampledValue("rate", (flips,), complete), no_whole, seed),
    )


def _passes(trials: Trials, f1_bound: float) -> bytearray:
    f1, args, parity = trials.column("f1_lax"), trials.column("args_valid"), trials.column("parity")
    privacy, checks = trials.column("privacy_ok"), trials.column("checks_ok")
    right = {kind: (trials.column(name), value) for kind, (name, value) in _RIGHT.items()}
    passed = bytearray(trials.scored)
    for row, code in enumerate(trials.kinds()):
        kind = KINDS[int(code)]
        column, value = right.get(kind, (privacy, 1))
        is_right = column[row] == value
        if kind == "eligible":
            is_right = not is_below(f1[row], f1_bound)
        is_right = is_right and privacy[row] == 1 and checks[row] != 0
        passed[row] = bool(is_right and args[row] != 0 and parity[row] != 0)
    return passed
