"""One metrics server: connected, asked within its deadlines, and left alone when it fails."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
import time
from collections.abc import Callable, Container
from typing import Any, NamedTuple

from tpusmi.metricproto import (
    GET_METRIC,
    GET_STATUS,
    LIST_METRICS,
    UnusableProtobufError,
    messages,
)
from tpusmi.model import ABSENT, FAILED, OK, Core, Latency, ProcessKey, Reading, Status
from tpusmi.sources.libtpu.answers import Answer, Asked, answer
from tpusmi.sources.libtpu.channel import LATE, AnyChannel, connected, status, target, words
from tpusmi.sources.libtpu.names import Name
from tpusmi.sources.libtpu.programs import cores
from tpusmi.sources.libtpu.questions import Questions
from tpusmi.text import clean

DEADLINE_S = 1.0
"""For everything that is asked of a server at one time."""
READ_MOST_S = 1.7
"""For the list and then the metrics of a slow one: less than a one-shot run waits."""
ANSWER_LEAST_S = 0.6
RETRY_S = (1.0, 2.0, 4.0)
"""How long a server that failed is left alone: after the first, second, and every later time."""
LISTED_MOST = 4096
NOT_INSTALLED = "protobuf is not installed (pip install protobuf)"
_HAS_NOT = ("NOT_FOUND", "UNIMPLEMENTED", "INVALID_ARGUMENT")
_TOO_SLOW = f"answers too slowly (over {DEADLINE_S:.0f} s)"
_NOT_THE_SERVICE = "is not libtpu's metrics service"


class Told(NamedTuple):
    """What a server said last, or why it said nothing."""

    status: Status
    """ABSENT: nothing listens. FAILED: somebody does, and `message` says what is wrong."""
    message: str = ""
    is_service: bool = True
    """False when somebody answered who is not libtpu."""
    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    cores: tuple[Core, ...] = ()
    ids: tuple[int, ...] = ()
    """Every device id that it has reported since it was met."""
    notes: tuple[str, ...] = ()
    lacks_package: bool = False
    """True where a port listens, and there is no protobuf here that can ask it."""


class _ServerError(Exception):
    """Why the whole server is of no use now."""

    def __init__(self, why: str, is_service: bool = True, is_lost: bool = False) -> None:
        super().__init__(why)
        self.is_service = is_service
        self.is_lost = is_lost
        """True when the connection broke."""


class Client:
    """Keeps one channel open between reads, and opens it anew for as long as it takes."""

    def __init__(
        self,
        port: int,
        metrics: Container[str] | None = None,
        connect: Callable[[str], AnyChannel] = connected,
    ) -> None:
        """`metrics` are those that are wanted; None is all of them."""
        self._open = connect
        self.port = port
        self.address = f"localhost:{port}"
        self.process: ProcessKey | None = None
        """Whose server it is."""
        self.is_alone = True
        """False makes it answer for its own devices only, where it could for the whole host."""
        self.with_programs = False
        """True asks what the cores run, too: expensive."""
        self._metrics = metrics
        self._questions = Questions(metrics)
        self._cores: tuple[Core, ...] = ()
        self._channel: AnyChannel | None = None
        self._failures = 0
        self._has_answered = False
        """True makes a late one slow; it is mute otherwise."""
        self._retry_at_s = -math.inf
        self._silent_since_s: float | None = None
        """Since when nothing of what was asked has been answered."""
        self._failed = Told(ABSENT)

    def read(self, now_s: float) -> Told:
        """Ask for what is due. Waits READ_MOST_S at most, and does not raise."""
        if now_s < self._retry_at_s:
            return self._failed
        started_s = time.monotonic()
        until_s, most_s = started_s + DEADLINE_S, started_s + READ_MOST_S
        try:
            if self._channel is not None:
                try:
                    return self._read(now_s, until_s, most_s)
                except _ServerError as failure:
                    if not failure.is_lost:
                        raise
                    self.close()
                    self._forget()  # it has ended, or another has taken its place
            missing = self._connect()
            # Importing protobuf takes its time on a busy host: that is not the server's fault.
            until_s = max(until_s, time.monotonic() + ANSWER_LEAST_S)
            return missing or self._read(now_s, until_s, most_s)
        except _ServerError as failure:
            self.close()
            self._silent_since_s = self._silent_since_s or started_s
            self._retry_at_s = now_s + RETRY_S[min(self._failures, len(RETRY_S) - 1)]
            self._failures += 1
            message = f"port {self.port} {failure}"
            kept = self._told(())
            self._failed = kept._replace(
                status=FAILED, message=message, is_service=failure.is_service
            )
            return self._failed

    def close(self) -> None:
        """Close the connection; the next read opens another."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _forget(self) -> None:
        self._questions, self._failures, self._cores = Questions(self._metrics), 0, ()
        self._has_answered = False

    def _connect(self) -> Told | None:
        """Open the channel; what to tell when that is not possible."""
        found = target(self.port)
        if found is None:
            self._forget()
            return Told(ABSENT, f"nothing listens on port {self.port}")
        try:
            messages()
            self._channel = self._open(found)
        except ImportError:
            return Told(ABSENT, NOT_INSTALLED, lacks_package=True)
        except UnusableProtobufError as error:
            return Told(ABSENT, clean(str(error), 300), lacks_package=True)
        return None

    def _read(self, now_s: float, until_s: float, most_s: float) -> Told:
        """`until_s` is for whichever is asked first: what comes second has until `most_s`."""
        if self._questions.is_list_due(now_s):
            self._list(now_s, until_s)
            until_s = max(until_s, min(most_s, time.monotonic() + DEADLINE_S))
        notes = self._ask(now_s, until_s)
        self._failures, self._silent_since_s = 0, None
        return self._told(notes)

    def _told(self, notes: tuple[str, ...]) -> Told:
        known = self._questions
        return Told(
            OK,
            readings=known.readings,
            latencies=tuple(found._replace(process=self.process) for found in known.latencies),
            cores=self._cores if self.with_programs else (),
            ids=known.ids,
            notes=(*notes, *self._lacks(), *known.notes),
        )

    def _lacks(self) -> list[str]:
        missing = self._questions.unlisted
        return [f"port {self.port} has no {', '.join(missing)}"] if missing else []

    def _list(self, now_s: float, until_s: float) -> None:
        """Ask what the server has. One that cannot tell is asked for all that we know."""
        call = self._call(LIST_METRICS, messages()["ListSupportedMetricsRequest"](), until_s)
        response = _response(call, "ListSupportedMetricsResponse")
        if response is not None:
            self._has_answered = True
            told = (str(m.metric_name) for m in response.supported_metric[:LISTED_MOST])
            self._questions.learn(frozenset(told), now_s)
        elif status(call) == "UNIMPLEMENTED":
            self._questions.learn(frozenset(), now_s)
        else:
            raise self._failure(call)

    def _ask(self, now_s: float, until_s: float) -> tuple[str, ...]:
        """Ask for all that is due at once: each fails alone. What did, in sentences."""
        calls = {name: self._metric_call(name, until_s) for name in self._questions.due(now_s)}
        programs = None
        if self.with_programs and self._questions.are_programs_due(now_s):
            request = messages()["GetTpuRuntimeStatusRequest"](include_hlo_info=True)
            programs = self._call(GET_STATUS, request, until_s)
        answers = {name: self._answer(name, call, now_s) for name, call in calls.items()}
        failed = {calls[name]: name for name, found in answers.items() if found is None}
        self._has_answered = self._has_answered or len(failed) < len(calls)
        for call, name in failed.items():
            if status(call) == LATE:
                self._questions.unanswered(name)
        self._judge(list(failed), len(calls))
        for name, found in answers.items():
            if found is not None:
                self._questions.answered(name, found)
        notes = self._notes(failed, now_s)
        if programs is not None:
            response = _response(programs, "GetTpuRuntimeStatusResponse")
            self._cores = () if response is None else cores(response, self.address)
            if response is None:
                notes.append(f"port {self.port} does not tell what the cores run")
        return tuple(notes)

    def _judge(self, failed: list[Any], asked: int) -> None:
        """Raises _ServerError when the failed calls speak for the whole server."""
        lost = [call for call in failed if status(call) == "UNAVAILABLE"]
        if lost:
            raise self._failure(lost[0])
        if not failed or len(failed) < asked:
            return
        whole = [call for call in failed if status(call) not in _HAS_NOT]
        if whole:
            raise self._failure(whole[0])
        if self._questions.listed is None and all(status(c) == "UNIMPLEMENTED" for c in failed):
            raise self._failure(failed[0])

    def _notes(self, failed: dict[Any, Name], now_s: float) -> list[str]:
        reasons: dict[str, list[str]] = {}
        for call, name in failed.items():
            if status(call) in _HAS_NOT:
                self._questions.refused(name, now_s)
                if self._questions.listed is not None:
                    reasons.setdefault("lists what it does not have", []).append(name.metric)
            else:
                reasons.setdefault(self._why(call), []).append(name.metric)
        return [f"port {self.port} {why}: {', '.join(names)}" for why, names in reasons.items()]

    def _metric_call(self, name: Name, until_s: float) -> Any:
        request = messages()["MetricRequest"](metric_name=name.grpc)
        if not self.is_alone:
            request.skip_node_aggregation = True
        return self._call(GET_METRIC, request, until_s)

    def _answer(self, name: Name, call: Any, now_s: float) -> Answer | None:
        response = _response(call, "MetricResponse")
        if response is None:
            return None
        return answer(name, response, Asked(self.address, self.process, now_s, time.time()))

    def _call(self, method: str, request: Any, until_s: float) -> Any:
        assert self._channel is not None
        return self._channel.call(method, request, max(0.0, until_s - time.monotonic()))

    def _failure(self, call: Any) -> _ServerError:
        """What a call that failed, or brought nonsense, says of its server."""
        code = status(call)
        is_service = code not in ("OK", "UNIMPLEMENTED", "UNAVAILABLE")
        return _ServerError(self._why(call), is_service, is_lost=code == "UNAVAILABLE")

    def _why(self, call: Any) -> str:
        since_s = self._silent_since_s
        if status(call) == LATE and since_s is not None:
            return f"has not answered for {time.monotonic() - since_s:.0f} s"
        if status(call) == LATE and self._has_answered:
            return _TOO_SLOW
        return _NOT_THE_SERVICE if status(call) == "OK" else words(call)


def _response(call: Any, message: str) -> Any | None:
    """The message a call brought, once it is there; None when it failed or brought nonsense."""
    if status(call) != "OK":
        return None
    from google.protobuf.message import DecodeError

    try:
        return messages()[message].FromString(call.result())
    except DecodeError:
        return None
