"""Live tools in the place of fixtures, for a run that records what a model asks for."""

from __future__ import annotations

import os

from callmark.core.jsontext import Json, digest
from callmark.core.protocols import Hit, Miss, Observed
from callmark.errors import Incomplete, UsageError
from callmark.recording.live import LiveTools, LostCall
from callmark.recording.recorder import (
    Called,
    NoSuchTool,
    NotCalled,
    Recorder,
    RecordingSession,
    Replayed,
)

SERVED_LIVE = "live"


def refuse_in_ci() -> None:
    """A build must not depend on tools that answer as they like."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise UsageError(
            "--record: calls live tools, which CI must not depend on (CI is set in the"
            " environment); record on your own machine and commit the fixtures"
        )


class LiveSource:
    """The tools of a recording run."""

    def __init__(self, recorder: Recorder, live: LiveTools) -> None:
        self._recorder = recorder
        self._live = live

    def session(self, sample_id: str | None = None) -> LiveSession:
        return LiveSession(self._recorder.session(sample_id))

    def observed(self) -> Observed:
        """What a report must say: these tools were alive."""
        calls, origin = self._recorder.calls, self._live.origin
        return Observed(
            provenance={"live_tools": {"origin": origin, "calls": calls}},
            warnings=(
                f"live tools were called ({origin}, {calls} calls): this run records fixtures;"
                " judge a model by a run on them",
            ),
        )


class LiveSession:
    """One trial. A tool that cannot be reached ends the run, which --resume goes on with."""

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        return False  # only asking a live tool could tell

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        if not isinstance(arguments, dict):
            return Miss(name, arguments, None)
        match self._session.ask(name, arguments):
            case Replayed(hit=Hit() as hit):
                return hit
            case Replayed(result=result) | Called(result=result):
                line = {"name": name, "key": arguments, "result": result}
                return Hit(result, SERVED_LIVE, digest(line))
            case NotCalled(key=key) | NoSuchTool(key=key):
                return Miss(name, arguments, key)
            case LostCall(reason=reason):
                raise Incomplete(
                    f"{reason}; what was answered is written: mend that and go on with --resume"
                )
