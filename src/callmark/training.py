"""Tool calls while a model is trained: `ToolUseCallback` for transformers' Trainer and TRL's.

It asks its cases of the model in memory, as it was when training began and then again and again,
and leaves the training as it found it: weights, random states, train flags. Needs the extra
`callmark[hf]`."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from callmark._version import __version__
from callmark.errors import MissingExtra, UsageError
from callmark.probe.case_making import make_cases
from callmark.probe.fidelity import fidelity, read_spec_values
from callmark.probe.records import (
    Checkpoint,
    FidelityResult,
    ProbeReport,
    ProbeResult,
    WrittenAnswer,
)
from callmark.probe.run import judge_series, report_bytes, series_exit_code
from callmark.probe.spec import FidelitySpec, ToolUseCase, read_cases
from callmark.probe.views import Question, probe_of, tools_of, written_of
from callmark.records.jsontext import Json
from callmark.records.seams import Reply
from callmark.reports.html.probe import write_probe_page
from callmark.run.offers import open_registry
from callmark.runners.hf.generate import Generator, Prompt, Replies, TokenChoice
from callmark.runners.hf.local import end_ids_of
from callmark.runners.hf.prompts import CannotRender, open_prompts
from callmark.stats.estimates import ALPHA, SAME
from callmark.store.files import atomic_writer

try:
    from transformers import Trainer, TrainerCallback
except ImportError:  # said in one sentence, as everywhere
    raise MissingExtra("callmark.training", "hf") from None

Cases = Path | str | Sequence[ToolUseCase | Mapping[str, Json]]

CASES = 64
SEED = 0  # of intervals, and of cases that are made
PLANNED_LOOKS = 10
SHARE_OF_TIME = 0.1  # of the training, for all looks; if no interval is given
IN_A_ROW = 2
_SAMPLE = "Which tool answers this?"


class ToolUseCallback(TrainerCallback):  # type: ignore[misc]  # untyped without the extra
    """Asks tool-use cases of the model while it is trained, and logs what became of its calls.

    Args:
        cases: a file of cases, or the cases themselves; None: some are made about the tools of
            `registry` (a file or folder; the built-in ones if None).
        every: look every so many steps; None: ten times, and less often where looking would take
            more than a tenth of the time.
        limit: take the first so many cases.
        stop: end the training after two looks in a row whose share of valid calls is below the
            floor with p ≤ 0.05 / planned looks.
        spec: fields of a `tool_use_fidelity` entry: `schema`, `expect_format`, …
        json, html: where the series is written when the training ends.

    >>> from callmark.training import ToolUseCallback  # doctest: +SKIP
    >>> watch = ToolUseCallback("cases.jsonl", every=50, html="calls.html")  # doctest: +SKIP
    >>> watch.attach(trainer)  # doctest: +SKIP
    >>> trainer.train()  # doctest: +SKIP
    """

    def __init__(
        self,
        cases: Cases | None = None,
        *,
        registry: str | None = None,
        every: int | None = None,
        limit: int | None = CASES,
        stop: bool = False,
        spec: Mapping[str, Json] | None = None,
        json: Path | str | None = None,
        html: Path | str | None = None,
    ) -> None:
        if every is not None and every < 1:
            raise UsageError(f"every: {every}: look every 1 step or more")
        self._spec = _spec_of(cases, registry, limit, spec)
        self._questions = probe_of(self._spec).questions
        self._every, self._stop = every, stop
        self._json, self._html = json, html
        self._log: Any = None
        self._base: list[WrittenAnswer] | None = None
        self._looks: list[tuple[Checkpoint, FidelityResult]] = []
        self._interval, self._planned = 1, PLANNED_LOOKS
        self._began = self._spent = self._longest = 0.0

    def attach(self, trainer: Any) -> ToolUseCallback:
        """Add the callback to a trainer, so that what it finds is logged wherever that logs to.
        Given as `callbacks=[…]` it works too, but only `log_history` and callbacks behind it see
        its numbers."""
        trainer.add_callback(self)
        # Not the trainer's own method: TRL's would take its running means for this line.
        self._log = lambda logs: Trainer.log(trainer, logs)
        return self

    @property
    def results(self) -> tuple[FidelityResult, ...]:
        """Every look so far."""
        return tuple(result for _, result in self._looks)

    def report(self) -> ProbeReport:
        """The series so far, as `callmark probe --checkpoints` would report it."""
        if not self._looks:
            raise UsageError("report: nothing was asked yet: the training has not come to a look")
        series = judge_series(*zip(*self._looks, strict=True))
        names = tuple(question.name for question in self._questions)
        last = series.points[-1].result
        return ProbeReport(
            callmark_version=__version__,
            models={"base": {"base": "at the start"}, "ft": {"base": "in training"}},
            seed=SEED,
            views={"views": "one model in memory, while it is trained"},
            results=(ProbeResult(result=last, case_names=names),),
            series=series,
            exit_code=series_exit_code(series, require_power=False),
        )

    # What the trainer calls.

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        self._looks, self._spent, self._longest = [], 0.0, 0.0
        self._interval = self._every or max(1, state.max_steps // PLANNED_LOOKS)
        self._planned = max(1, state.max_steps // self._interval)
        self._began = time.perf_counter()
        self._base = self._ask(kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        is_due = self._base is not None and state.global_step % self._interval == 0
        if is_due and (self._every is not None or self._is_affordable()):
            self._look(state, control, kwargs)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._base is None:
            return
        if not self._looks or self._looks[-1][0].step != state.global_step:
            self._look(state, control, kwargs)
        if self._json is not None:
            with atomic_writer(Path(self._json)) as stream:
                stream.write(report_bytes(self.report()))
        if self._html is not None:
            with atomic_writer(Path(self._html)) as stream:
                write_probe_page(stream, self.report())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Without a trainer to log with, the numbers go along with the next line."""
        if self._log is None and isinstance(logs, dict) and self._looks:
            logs.update(numbers_of(self._looks[-1][1]))

    def _is_affordable(self) -> bool:
        """The first look is paid for as well, and there will be one at the end."""
        trained = time.perf_counter() - self._began - self._spent
        return self._spent + 2 * self._longest <= SHARE_OF_TIME * trained

    def _look(self, state: Any, control: Any, kwargs: dict[str, Any]) -> None:
        assert self._base is not None  # noqa: S101 - who calls has looked
        tuned = self._ask(kwargs)
        result = fidelity(self._spec, self._base, tuned, seed=SEED)
        step = int(state.global_step)
        self._looks.append((Checkpoint(label=f"step {step}", step=step), result))
        if self._log is None:
            state.log_history.append({**numbers_of(result), "step": step})
        else:
            # To log clears the wish to log, and the trainer may have one of its own at this step.
            wanted = control.should_log
            self._log(numbers_of(result))
            control.should_log = wanted
        if self._stop and self._is_lost():
            control.should_training_stop = True

    def _is_lost(self) -> bool:
        """Two looks in a row: one may be a bad moment of the training."""
        last = [result.evidence for _, result in self._looks[-IN_A_ROW:]]
        floor, level = self._spec.assert_validity_delta_gte, ALPHA / self._planned
        return len(last) == IN_A_ROW and all(
            one is not None and one.validity_delta < floor - SAME and one.p_value <= level
            for one in last
        )

    def _ask(self, kwargs: dict[str, Any]) -> list[WrittenAnswer]:
        tokenizer = kwargs.get("processing_class") or kwargs.get("tokenizer")
        if tokenizer is None:
            raise UsageError("the trainer has no processing_class: give it the tokenizer")
        started = time.perf_counter()
        with untouched(kwargs["model"]):
            made = ask_in_memory(
                kwargs["model"], getattr(tokenizer, "tokenizer", tokenizer), self._questions
            )
        took = time.perf_counter() - started
        self._spent, self._longest = self._spent + took, max(self._longest, took)
        return made


def numbers_of(result: FidelityResult) -> dict[str, float]:
    """What is logged; what has no denominator is left out."""
    evidence = result.evidence
    if evidence is None:
        return {}
    found = {"callmark/valid_calls": evidence.json_valid_rate_ft}
    if evidence.hallucination_rate is not None:
        found["callmark/wrong_tools"] = evidence.hallucination_rate
    if evidence.num_format_pairs:
        changed = evidence.num_format_changed / evidence.num_format_pairs
        found["callmark/format_kept"] = 1.0 - changed
    return found


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Within it the model is in evaluation; afterwards every train flag and every stream of random
    numbers is as it was, so that the training goes on as if nobody had asked."""
    import numpy as np
    import torch

    flags = [(module, module.training) for module in model.modules()]
    python, numpy, here = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    model.eval()
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(here)
        if devices:
            torch.cuda.set_rng_state_all(devices)


def ask_in_memory(model: Any, tokenizer: Any, questions: Sequence[Question]) -> list[WrittenAnswer]:
    """Greedy answers of a model that somebody else holds, in the order of the questions."""
    inner = model.module if hasattr(model, "module") and not hasattr(model, "config") else model
    prompts = open_prompts(
        tokenizer, tools_of(questions), raw=False, where="the trainer's tokenizer"
    )
    configured = getattr(getattr(inner, "generation_config", None), "eos_token_id", None)
    known = configured if isinstance(configured, list) else [configured]
    ends = end_ids_of(tokenizer, prompts, [one for one in known if one is not None])

    def encoded(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    try:
        asked = [
            Prompt(encoded(prompts.text(one.messages, one.tools)), one.max_new_tokens)
            for one in questions
        ]
    except CannotRender as error:
        raise UsageError(f"the trainer's tokenizer cannot render a case: {error}") from None
    generator = Generator(inner, TokenChoice(end_ids=ends), encoded(_SAMPLE))
    replies = Replies(tokenizer, ends)
    return [
        WrittenAnswer("", None)
        if made is None
        else written_of(Reply(text=replies.text(made), finish="stop" if made.ended else "length"))
        for made in generator.generate(asked)
    ]


def _spec_of(
    cases: Cases | None,
    registry: str | None,
    limit: int | None,
    fields: Mapping[str, Json] | None,
) -> FidelitySpec:
    if cases is None:
        made = make_cases(open_registry(registry), limit or CASES, SEED).cases
        return read_spec_values(made, fields)
    if registry is not None:
        raise UsageError("registry: cases are made only where none are given")
    given = read_cases(Path(cases)) if isinstance(cases, str | Path) else tuple(cases)
    spec = read_spec_values(given, fields)
    return msgspec.structs.replace(spec, cases=spec.cases[:limit])
