"""One metrics server: what to ask it and when, what it answered last, and why it failed."""

import math
import time
from collections.abc import Container
from itertools import chain
from typing import Any

from tpusmi.metricproto import GET_METRIC, GET_STATUS, LIST_METRICS, UnusableProtobufError, messages
from tpusmi.model import ABSENT, FAILED, OK, Core, ProcessKey, RowKey
from tpusmi.sources.libtpu.decode import MetricValues, Origin, cores, message, metric_values
from tpusmi.sources.libtpu.grpc_status import NOT_THE_SERVICE, Code, reason
from tpusmi.sources.libtpu.names import GAUGE, NAMES, Name
from tpusmi.sources.libtpu.plain import PlainCall, PlainChannel
from tpusmi.sources.libtpu.ports import ServerReply, target_of
from tpusmi.text import clean

DEADLINE_S = 1.0
"""The time for everything that is asked of a server at once."""
READ_MOST_S = 1.7
"""The time for the list and then the metrics of a slow server: less than a one-shot run waits."""
ANSWER_LEAST_S = 0.6
RETRY_S = (1.0, 2.0, 4.0)
"""How long a server that failed is left alone: after the first, second, and every later time."""
LIST_EVERY_S = 300.0
PROGRAMS_EVERY_S = 5.0
REFUSED_S = 60.0
"""A metric that the server does not have is not asked for again sooner."""
LISTED_MOST = 4096
IDS_MOST = 1024
NOT_INSTALLED = "protobuf is not installed (pip install protobuf)"
_HAS_NOT = (Code.NOT_FOUND, Code.UNIMPLEMENTED, Code.INVALID_ARGUMENT)
_MEMORY = ("hbm_used_bytes", "hbm_limit_bytes")


class _ServerError(Exception):
    """Why the whole server is of no use now, and the code of the call that showed it."""

    def __init__(self, why: str, code: Code) -> None:
        super().__init__(why)
        self.code = code


class Client:
    """Asks one server, over a connection that stays open between reads."""

    def __init__(self, port: int, metrics: Container[str] | None = None) -> None:
        """`metrics` are the names to ask for; None is all of them."""
        self.port = port
        self.address = f"localhost:{port}"
        self.process: ProcessKey | None = None
        """The process that runs the server."""
        self.is_alone = True
        """False makes the server answer for its own devices only, where it could for the host."""
        self.with_programs = False
        """True asks what the cores run, which is expensive."""
        self.failed_reads = 0
        """How often the server failed, counted by the pool for a port that was only guessed."""
        self._names = [n for n in NAMES if n.grpc and (metrics is None or n.metric in metrics)]
        self._channel: PlainChannel | None = None
        self._retry_at_s = -math.inf
        self._stood_still = False
        """Whether the last read failed because this process came late to its own deadline."""
        self._silent_since_s: float | None = None
        """When the server stopped answering; None while it answers."""
        self._failed = ServerReply(ABSENT)
        self._forget()

    def _forget(self) -> None:
        """Start over: the server has ended, or another has taken its place."""
        self._failures = 0
        self._has_answered = False
        """True where a server that is late is slow; otherwise it is mute."""
        self._listed: frozenset[str] | None = None
        """The metrics that the server says it has; None when it cannot list them."""
        self._list_at_s = self._programs_at_s = -math.inf
        self._due_at_s: dict[Name, float] = {}
        self._values: dict[Name, MetricValues] = {}
        self._cores: tuple[Core, ...] = ()
        # Ids of memory, and of anything else. Where there are too many, the oldest are dropped.
        self._ids: dict[bool, list[int]] = {True: [], False: []}

    def read(self, now_s: float) -> ServerReply:
        """Ask for what is due. Waits READ_MOST_S at most; once more where this process stood still
        meanwhile. Raises OSError when this process has no descriptor left.
        """
        if now_s < self._retry_at_s:
            return self._failed._replace(silent_s=self._silent_s())
        before = -math.inf, self._failures, self._silent_since_s
        reply = self._try(now_s)
        if reply.status == FAILED and self._stood_still:
            self._retry_at_s, self._failures, self._silent_since_s = before
            reply = self._try(now_s)
        return reply

    def _try(self, now_s: float) -> ServerReply:
        self._stood_still = False
        started_s = time.monotonic()
        until_s, most_s = started_s + DEADLINE_S, started_s + READ_MOST_S
        try:
            if self._channel is not None:
                try:
                    return self._read(now_s, until_s, most_s)
                except _ServerError as failure:
                    if failure.code != Code.UNAVAILABLE:
                        raise
                    self.close()
                    self._forget()
            missing = self._connect()
            # Importing protobuf takes its time on a busy host: that is not the server's fault.
            until_s = max(until_s, time.monotonic() + ANSWER_LEAST_S)
            return missing or self._read(now_s, until_s, most_s)
        except _ServerError as failure:
            self._stood_still = self._channel is not None and self._channel.was_late
            self.close()
            self._silent_since_s = self._silent_since_s or started_s
            self._retry_at_s = now_s + RETRY_S[min(self._failures, len(RETRY_S) - 1)]
            self._failures += 1
            self._failed = self._reply()._replace(
                status=FAILED,
                message=f"port {self.port} {failure}",
                is_service=failure.code not in (Code.OK, Code.UNIMPLEMENTED, Code.UNAVAILABLE),
                silent_s=self._silent_s(),
            )
            return self._failed

    def _silent_s(self) -> float | None:
        since_s = self._silent_since_s
        return None if since_s is None else max(0.0, time.monotonic() - since_s)

    def close(self) -> None:
        """Close the connection; the next read opens another."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _connect(self) -> ServerReply | None:
        """Open the channel; returns the reply to give when that is not possible."""
        target = target_of(self.port)
        if target is None:
            self._forget()
            return ServerReply(ABSENT, f"nothing listens on port {self.port}")
        try:
            messages()
            self._channel = PlainChannel(target)
        except ImportError:
            return ServerReply(ABSENT, NOT_INSTALLED, lacks_package=True)
        except UnusableProtobufError as error:
            return ServerReply(ABSENT, clean(str(error), 300), lacks_package=True)
        return None

    def _read(self, now_s: float, until_s: float, most_s: float) -> ServerReply:
        """The list, where it is due, has until `until_s`; the metrics after it, until `most_s`."""
        if now_s >= self._list_at_s:
            self._list(until_s)
            self._list_at_s = now_s + LIST_EVERY_S
            until_s = max(until_s, min(most_s, time.monotonic() + DEADLINE_S))
        notes = self._ask(now_s, until_s)
        self._failures, self._silent_since_s = 0, None
        return self._reply(notes)

    def _reply(self, notes: tuple[str, ...] = ()) -> ServerReply:
        """Everything that the server has answered so far."""
        values = [*self._values.values()]
        unlisted = [
            n.metric
            for n in self._names
            if self._listed is not None and n.shape == GAUGE and n.grpc not in self._listed
        ]
        lacks = [f"port {self.port} has no {', '.join(unlisted)}"] if unlisted else []
        return ServerReply(
            OK,
            readings=tuple(chain.from_iterable(v.readings for v in values)),
            latencies=tuple(x._replace(process=self.process) for v in values for x in v.latencies),
            cores=self._cores if self.with_programs else (),
            # Memory decides: a duty cycle can be that of a chip.
            ids=tuple(sorted(self._ids[True] or self._ids[False])),
            notes=(*notes, *lacks, *(note for v in values for note in v.notes)),
        )

    def _list(self, until_s: float) -> None:
        """Ask which metrics the server has. Where it cannot list them, all are asked for."""
        call = self._call(LIST_METRICS, messages()["ListSupportedMetricsRequest"](), until_s)
        response = message(call, "ListSupportedMetricsResponse")
        if response is None and call.code() != Code.UNIMPLEMENTED:
            raise self._failure(call)
        listed = () if response is None else response.supported_metric[:LISTED_MOST]
        self._has_answered = self._has_answered or response is not None
        self._listed = frozenset(str(m.metric_name) for m in listed) or None

    def _ask(self, now_s: float, until_s: float) -> tuple[str, ...]:
        """Ask for all that is due at once: each fails alone. Returns what did, in sentences."""
        calls = {name: self._metric_call(name, until_s) for name in self._due(now_s)}
        programs = self._programs_call(now_s, until_s)
        responses = {name: message(call, "MetricResponse") for name, call in calls.items()}
        failed = {name: call for name, call in calls.items() if responses[name] is None}
        self._has_answered = self._has_answered or len(failed) < len(calls)
        for name, call in failed.items():
            if call.code() == Code.DEADLINE_EXCEEDED:
                del self._due_at_s[name]  # asked again the next time
        self._judge([*failed.values()], len(calls))
        origin = Origin(self.address, self.process, now_s, time.time())
        for name, response in responses.items():
            if response is not None:
                self._keep(name, metric_values(name, response, origin))
        notes = self._notes(failed, now_s)
        if programs is not None:
            running = message(programs, "GetTpuRuntimeStatusResponse")
            self._cores = () if running is None else cores(running, self.address)
            if running is None:
                notes.append(f"port {self.port} does not report what the cores run")
        return tuple(notes)

    def _due(self, now_s: float) -> list[Name]:
        """The metrics to ask for now. They count as asked, whatever comes of it."""
        due = [
            name
            for name in self._names
            if (self._listed is None or name.grpc in self._listed)
            and now_s >= self._due_at_s.get(name, -math.inf)
        ]
        self._due_at_s.update((name, now_s + name.every_s) for name in due)
        return due

    def _metric_call(self, name: Name, until_s: float) -> PlainCall:
        request = messages()["MetricRequest"](metric_name=name.grpc)
        if not self.is_alone:
            request.skip_node_aggregation = True
        return self._call(GET_METRIC, request, until_s)

    def _programs_call(self, now_s: float, until_s: float) -> PlainCall | None:
        """Ask what the cores run, where that is due."""
        if not self.with_programs or now_s < self._programs_at_s:
            return None
        self._programs_at_s = now_s + PROGRAMS_EVERY_S
        request = messages()["GetTpuRuntimeStatusRequest"](include_hlo_info=True)
        return self._call(GET_STATUS, request, until_s)

    def _call(self, method: str, request: Any, until_s: float) -> PlainCall:
        assert self._channel is not None
        return self._channel.call(method, request, max(0.0, until_s - time.monotonic()))

    def _judge(self, failed: list[PlainCall], count: int) -> None:
        """Raises _ServerError when the failed calls mean that the whole server fails."""
        worst = [call for call in failed if call.code() == Code.UNAVAILABLE]
        if failed and len(failed) == count:
            worst += [call for call in failed if call.code() not in _HAS_NOT]
            if self._listed is None and all(c.code() == Code.UNIMPLEMENTED for c in failed):
                worst += failed
        if worst:
            raise self._failure(worst[0])

    def _keep(self, name: Name, values: MetricValues) -> None:
        """Keep the newest values, also where the server reports none any longer."""
        self._values[name] = values
        if name.shape == GAUGE:
            is_memory = name.metric in _MEMORY
            new = {r.subject.id for r in values.readings if isinstance(r.subject, RowKey)}
            kept = [id for id in self._ids[is_memory] if id not in new]
            self._ids[is_memory] = [*kept, *sorted(new)][-IDS_MOST:]

    def _notes(self, failed: dict[Name, PlainCall], now_s: float) -> list[str]:
        """Why metrics failed, one sentence for each reason."""
        reasons: dict[str, list[str]] = {}
        for name, call in failed.items():
            if call.code() not in _HAS_NOT:
                reasons.setdefault(self._why(call), []).append(name.metric)
                continue
            self._values.pop(name, None)
            self._due_at_s[name] = now_s + REFUSED_S
            if self._listed is not None:
                reasons.setdefault("lists metrics but rejects requests for them", []).append(
                    name.metric
                )
        return [f"port {self.port} {why}: {', '.join(names)}" for why, names in reasons.items()]

    def _failure(self, call: PlainCall) -> _ServerError:
        return _ServerError(self._why(call), call.code())

    def _why(self, call: PlainCall) -> str:
        code, since_s = call.code(), self._silent_since_s
        if code == Code.OK:
            return NOT_THE_SERVICE
        if code == Code.DEADLINE_EXCEEDED and since_s is not None:
            return f"has not answered for {time.monotonic() - since_s:.0f} s"
        if code == Code.DEADLINE_EXCEEDED and self._has_answered:
            return f"answers too slowly (over {DEADLINE_S:.0f} s)"
        return reason(code, call.details())
