"""What a comparison of two runs says. Nothing is rounded, and nothing depends on a clock but what
stands below `timing`."""

from __future__ import annotations

from typing import Literal

import msgspec

from callmark.records.jsontext import JsonRecord
from callmark.records.report import Metric
from callmark.records.results import Better
from callmark.stats.estimates import Method, Procedure

COMPARISON_VERSION = "1.0.0"
LISTED = 1000  # sample ids of each list; the count beside them is complete
MOST_DROPPED = 0.02  # the share of pairs that may be lost before nothing is decided any more
MARGIN = 0.03
PRIMARY = (
    "integration_f1_macro_lax",
    "valid_call_rate",
    "multi_call_parity_rate",
    "controls_with_integration",
)

Decision = Literal["regression", "non_inferior", "inconclusive"]
Check = Literal["equal", "different", "unchecked"]


class Listed(msgspec.Struct, frozen=True):
    """Samples in the order of their dataset: all up to `LISTED`."""

    count: int = 0
    sample_ids: tuple[str, ...] = ()


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the same samples of both sides. `difference` is B − A and `ci_95` its
    interval. `worse` and `better` count samples. A count is given as the share of its samples.

    Only primary metrics are tested: `p` is one-sided (B worse than A), `p_adjusted` after Holm;
    `bound` is the one-sided 95 % bound of how much worse B may be (negative: worse)."""

    metric: str
    role: Literal["primary", "exploratory"]
    better_is: Better
    a: float | None
    b: float | None
    difference: float | None
    ci_95: tuple[float, float] | None = None
    method: Method | None = None
    n: int = 0
    worse: int | None = None
    better: int | None = None
    test: Procedure | None = None
    p: float | None = None
    p_adjusted: float | None = None
    bound: float | None = None
    decision: Decision | None = None
    reason: str | None = None


class Flips(msgspec.Struct, frozen=True):
    """Samples that were right in A and are not in B, and the other way round; and those that are
    right on neither side."""

    lost: Listed
    gained: Listed
    neither: Listed = Listed()


class SideFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Who was compared. None: not there, or not the same in all results. `scored_again`: another
    scorer had scored it, or with other settings."""

    path: str
    samples: int | None = None
    trials: int | None = None
    errors: int | None = None
    model_fingerprint: str | None = None
    runner_fingerprint: str | None = None
    scored_again: bool = False


class PairCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`dropped`: a trial of either side ended in an error. `removed` and `added`: only A, only B
    has the sample. `changed`: prompt, tools or fixtures are not the same any more. `quarantined`:
    the settings take them out of every decision."""

    paired: int = 0
    dropped: Listed = Listed()
    removed: Listed = Listed()
    added: Listed = Listed()
    changed: Listed = Listed()
    changed_in: dict[str, int] = {}
    quarantined: Listed = Listed()


class FallenSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of which B passes fewer trials than chance explains: Fisher's exact one-sided p, and
    what is left of it after Benjamini and Hochberg's adjustment."""

    sample_id: str
    passed_a: int
    trials_a: int
    passed_b: int
    trials_b: int
    p: float
    p_adjusted: float


class OwnPast(msgspec.Struct, frozen=True, kw_only=True):
    """Each sample of B against its own trials in A. `tested` samples could have shown that they
    fell. `fallen` ones did, the first are listed; those `within` their noise pass less often, but
    not clearly; of the `open` ones nobody can tell with so few trials. `n/a`: one trial on each
    side."""

    status: Literal["pass", "fail", "inconclusive", "n/a"]
    tested: int = 0
    fallen_count: int = 0
    fallen: tuple[FallenSample, ...] = ()
    within: Listed = Listed()
    open: Listed = Listed()


class PointCheck(msgspec.Struct, frozen=True, kw_only=True):
    """|B − A| of one metric against a limit: no test, no interval. `ok` None: not computable."""

    metric: str
    delta: float | None
    limit: float
    ok: bool | None


class SpendingPair(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial took on the average, on both sides. `limit`: B may take so many times what A
    takes. `ok` None: there is no limit, or one side did not count."""

    a: float | None
    b: float | None
    ratio: float | None = None
    limit: float | None = None
    ok: bool | None = None


class Comparison(JsonRecord, msgspec.Struct, frozen=True, kw_only=True):
    """What `callmark.compare` returns: the `decision` on B against A, why, and each metric that
    it rests on; `.to_dict()` is what `callmark compare --json` writes (docs/compare.md).

    >>> import callmark
    >>> callmark.Comparison.__struct_fields__[1:3]
    ('decision', 'decision_reason')
    """

    comparison_version: str = COMPARISON_VERSION
    decision: Decision
    decision_reason: str
    paired: bool
    a: SideFacts
    b: SideFacts
    comparable: dict[str, Check]
    common: bool = False
    as_stored: bool = False
    scorer_version: str | None = None
    margin: float = MARGIN
    seed: int | None = None
    pairs: PairCounts = PairCounts()
    primary: tuple[Compared, ...] = ()
    exploratory: tuple[Compared, ...] = ()
    by_tool: dict[str, tuple[Compared, ...]] = {}
    by_slice: dict[str, tuple[Compared, ...]] = {}
    by_locale: dict[str, tuple[Compared, ...]] = {}
    flips: dict[str, Flips] = {}
    own_past: OwnPast = OwnPast(status="n/a")
    point_check: PointCheck | None = None
    timing: dict[str, SpendingPair] = {}
    warnings: tuple[str, ...] = ()


class MeasuredRun(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs, with its metrics over all its samples that were scored."""

    facts: SideFacts
    metrics: dict[str, Metric]


class RunMatrix(JsonRecord, msgspec.Struct, frozen=True, kw_only=True):
    """Several runs: the first is the base. Each of the others has a comparison with it, in their
    order; the worst of those is the `decision`."""

    comparison_version: str = COMPARISON_VERSION
    decision: Decision
    runs: tuple[MeasuredRun, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def primary(self) -> tuple[str, ...]:
        """The metrics that decide."""
        return tuple(one.metric for one in self.comparisons[0].primary)

    @property
    def warnings(self) -> tuple[str, ...]:
        found = (warning for one in self.comparisons for warning in one.warnings)
        return tuple(dict.fromkeys(found))


def matrix_exit_code(matrix: RunMatrix) -> int:
    """1 if one run is worse than the base, 5 if of one it cannot be told, else 0."""
    codes = {exit_code(one) for one in matrix.comparisons}
    return 1 if 1 in codes else max(codes)


def exit_code(comparison: Comparison) -> int:
    """0 not worse than the margin, 1 worse, 5 cannot be told. A point check that was asked for
    takes the place of the margin: then nothing but it and a regression decides. A limit on what
    B takes is kept, or it is not, or nobody knows."""
    check = comparison.point_check
    limited = [pair for pair in comparison.timing.values() if pair.limit is not None]
    is_over = any(pair.ok is False for pair in limited)
    if comparison.decision == "regression" or is_over or (check is not None and check.ok is False):
        return 1
    is_fine = comparison.decision == "non_inferior" if check is None else bool(check.ok)
    return 0 if is_fine and all(pair.ok for pair in limited) else 5
