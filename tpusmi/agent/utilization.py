"""How busy this process's own TPU devices are, from the metrics server that libtpu runs in it.

A container or a notebook whose port cannot be reached from outside still shows its duty cycle this
way. It is read in a thread of its own: a server that hangs delays no sample. protobuf is loaded
only when there is a TPU backend and a server, and if it is installed; grpc never is.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tpusmi import chips
from tpusmi.agent.own_process import block_signals
from tpusmi.agent.segment import Values
from tpusmi.agent.threads import UTILIZATION_SHARE, Event, Pace, Thread
from tpusmi.model import Reading, RowKey
from tpusmi.wire.layout import UTILIZATION_FIELDS

if TYPE_CHECKING:
    from tpusmi.sources.libtpu.pool import Pool
    from tpusmi.sources.libtpu.ports import Endpoint

LOOK_EVERY_S = 5.0
"""Time between two looks for the ports on which this process listens."""
AGAIN_S = (5.0, 60.0)
"""Waits before it begins again: the job may be importing what it needs."""
END_S = 0.7
"""The time for the thread to end; where its server hangs, it takes a little longer, and is not
waited for.
"""
QUIET_MOST_S = 60.0
"""A server that does not answer is asked less and less often, down to once in this time."""


class Busy(NamedTuple):
    """One answer; without any value before the first."""

    at_s: float | None = None
    period_s: float | None = None
    devices: tuple[Values, ...] = ()

    def values(self, device: int) -> Values:
        """One of each of UTILIZATION_FIELDS for that local device."""
        return self.devices[device] if self.devices else (None,) * len(UTILIZATION_FIELDS)


class OwnServer:
    """The metrics server of this process; no other process's port is ever asked. Nothing is loaded
    before this process listens, and grpc never is: its threads and fork handlers do not belong in a
    job.
    """

    def __init__(self) -> None:
        self.loading_s = 0.0
        """CPU time for loading modules: much, but only once."""
        self._pool: Pool | None = None
        self._endpoints: Sequence[Endpoint] = ()
        self._looked_at_s = -math.inf

    def read(self, now_s: float) -> Sequence[Reading]:
        """Its rows; empty when there is no server. Raises ImportError where protobuf is not
        installed.
        """
        began_s = time.thread_time()
        from tpusmi.sources.libtpu.ports import PORTS_VARIABLE, find_own

        if self._pool is None or now_s - self._looked_at_s >= LOOK_EVERY_S:
            self._endpoints = find_own(os.environ.get(PORTS_VARIABLE, ""))
            self._looked_at_s = now_s
        if self._pool is None:
            if not self._endpoints:
                return []
            from tpusmi.metricproto import messages
            from tpusmi.sources.libtpu import client, plain  # noqa: F401  # not within a read
            from tpusmi.sources.libtpu.pool import Pool

            messages()
            self._pool = Pool(UTILIZATION_FIELDS)
            self.loading_s = time.thread_time() - began_s
        answers = self._pool.ask(self._endpoints, now_s)
        return [r for answer in answers for r in answer.reply.readings]

    def close(self) -> None:
        """Close the connection."""
        if self._pool is not None:
            self._pool.close()


class Utilization(Thread):
    """Asks the server until it is stopped. Raises nothing; after an unexpected error it begins
    again, a few times.
    """

    def __init__(
        self,
        ids: Sequence[int | None],
        kind: str | None,
        period_s: float,
        connect: Callable[[], OwnServer] = OwnServer,
    ) -> None:
        super().__init__()
        self.busy = Busy()
        """The newest answer."""
        self.cpu_s = 0.0
        """CPU time of this thread so far."""
        self.failure: str | None = None
        """Why it ended by itself; None while it works, and where protobuf is not installed."""
        self._ids = ids
        self._may_be_partial = _has_one_device_per_chip(kind)
        self._pace = Pace(period_s, UTILIZATION_SHARE)
        self._connect = connect
        self._end = Event()

    def run(self) -> None:
        """The thread. Only its frame holds the server: in a forked child, nothing can touch the
        connection.
        """
        block_signals()
        failure = None
        for again_s in (0.0, *AGAIN_S):
            if again_s and self._end.wait(again_s):
                return
            server = self._connect()
            try:
                self._ask(server)
                server.close()
                return
            except ImportError:
                return  # protobuf is not installed
            except Exception as error:  # noqa: BLE001  # the job goes on without these numbers
                failure = f"{type(error).__name__}: {error}"
        self.failure = failure

    def stop(self) -> None:
        """End the thread; waits END_S at most."""
        self._end.set()
        self.join(END_S)

    def _ask(self, server: OwnServer) -> None:
        quiet_s = newest_at_s = 0.0
        while not self._end.is_set():
            started, before_s = time.monotonic(), time.thread_time() - server.loading_s
            readings = server.read(started)
            at_s = max((r.at_s for r in readings), default=0.0)
            if at_s > newest_at_s:
                newest_at_s, quiet_s = at_s, 0.0
                rows = joined(readings, self._ids, self._may_be_partial)
                self.busy = Busy(min(r.at_s for r in readings), self._pace.period_s, rows)
            else:  # no answer, or an old one
                quiet_s = min(max(1.0, 2 * quiet_s), QUIET_MOST_S)
            self.cpu_s = time.thread_time()
            # Charged from the first read: a server may never answer, and still cost time.
            self._pace.spent(started, self.cpu_s - server.loading_s - before_s)
            self._end.wait(max(quiet_s, self._pace.wait_s(time.monotonic())))


def begin(
    ids: Sequence[int | None], platform: str | None, kind: str | None, period_s: float
) -> Utilization:
    """The thread for those devices; not started where it is turned off, or no thread can start."""
    thread = Utilization(ids, kind, period_s)
    if is_enabled(platform):
        try:
            thread.start()
        except RuntimeError:  # no more threads
            pass
    return thread


def is_enabled(platform: str | None) -> bool:
    """True on a TPU, unless TPUSMI_UTILIZATION=0 in the environment."""
    return platform == "tpu" and os.environ.get("TPUSMI_UTILIZATION", "1") != "0"


def joined(
    readings: Sequence[Reading], ids: Sequence[int | None], may_be_partial: bool
) -> tuple[Values, ...]:
    """The values of each local device: by its global id; where the ids are others but as many, by
    their order; else unknown.

    On a chip of two devices some metrics are reported per chip, and must not pass for those of a
    device: there must be as many rows as devices.
    """
    columns = [_column(readings, name, ids, may_be_partial) for name in UTILIZATION_FIELDS]
    return tuple(zip(*columns, strict=True)) if ids else ()


def _column(
    readings: Sequence[Reading], name: str, ids: Sequence[int | None], may_be_partial: bool
) -> Values:
    rows: dict[int, float] = {
        r.subject.id: r.value
        for r in readings
        if r.metric == name and isinstance(r.subject, RowKey)
    }
    as_many = len(rows) == len(ids)
    if rows.keys() <= set(ids) and (as_many or may_be_partial):
        return tuple(None if id is None else rows.get(id) for id in ids)
    numbers = [id for id in ids if id is not None]
    if as_many and len(numbers) == len(ids):
        by_rank = [rows[id] for id in sorted(rows)]
        order = sorted(range(len(ids)), key=lambda i: numbers[i])
        return tuple(by_rank[order.index(i)] for i in range(len(ids)))
    return (None,) * len(ids)


def _has_one_device_per_chip(kind: str | None) -> bool:
    generation = None if kind is None else chips.by_kind(kind)
    return generation is not None and generation.devices_per_chip == 1
