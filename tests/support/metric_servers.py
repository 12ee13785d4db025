"""Metrics servers that do as they are told, strictly: good, silent, slow, stopped, or something
else.

`python metric_servers.py` is one in a process of its own, that can be stopped by a signal.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import grpc

from tpusmi.metricproto import GET_METRIC, GET_STATUS, LIST_METRICS, SERVICE, messages

HBM_TOTAL = "tpu.runtime.hbm.memory.total.bytes"
HBM_USED = "tpu.runtime.hbm.memory.usage.bytes"
DUTY = "tpu.runtime.tensorcore.dutycycle.percent"
BANDWIDTH = "tpu.runtime.hbm.utilization.percent"
IDLE = "tpu.runtime.tensorcore.idle_duration.seconds"
QUEUE = "hlo.queue.size.gauge"
EXECUTION = "hlo.execution.timing.distribution.microseconds"
TRANSFER = "megascale.dcn_transfer_latencies.microsecond.cumulative.distribution"
GIB = 1 << 30

Answers = Mapping[str, Any]
"""By metric name: a MetricResponse, or the StatusCode with which it is refused."""


def gauge(name: str, rows: Mapping[Any, float], key: str = "device-id") -> Any:
    """A number for each device: an id that is text travels as text, None as no attribute value."""
    made = messages()["MetricResponse"]()
    made.metric.name = name
    for id, number in rows.items():
        row = made.metric.metrics.add()
        row.attribute.key = key
        if isinstance(id, str):
            row.attribute.value.string_attr = id
        elif id is not None:
            row.attribute.value.int_attr = id
        put(row, number)
    return made


def put(row: Any, number: float) -> None:
    """A whole number travels as one, as libtpu does it."""
    if isinstance(number, int):
        row.gauge.as_int = number
    else:
        row.gauge.as_double = number


def labelled(row: Any, **labels: str | int) -> Any:
    """Several attributes stand in one."""
    for key, told in labels.items():
        pair = row.attribute.value.kvlist_attr.attributes.add(key=key)
        if isinstance(told, str):
            pair.value.string_attr = told
        else:
            pair.value.int_attr = told
    return row


def of_devices(ids: Sequence[int]) -> dict[str, Any]:
    """The usual answers of a server with those devices."""
    return {
        HBM_TOTAL: gauge(HBM_TOTAL, {i: 16 * GIB for i in ids}),
        HBM_USED: gauge(HBM_USED, {i: (n + 1) * GIB for n, i in enumerate(ids)}),
        DUTY: gauge(DUTY, {i: 50.0 + n for n, i in enumerate(ids)}),
    }


def of_numbers(rows: Mapping[str, Mapping[Any, float]]) -> dict[str, Any]:
    """The answers with those numbers, by metric and id; TRANSFER by count and mean."""
    made = {}
    for name, numbers in rows.items():
        row = {int(id): number for id, number in numbers.items()}
        made[name] = transfer(row) if name == TRANSFER else gauge(name, row)
    return made


def transfer(row: Mapping[int, float]) -> Any:
    """A distribution of `8MB+` for each count, with that mean."""
    made = messages()["MetricResponse"]()
    made.metric.name = TRANSFER
    for count, mean in row.items():
        found = made.metric.metrics.add()
        labelled(found, buffer_size="8MB+", type="grpc")
        found.distribution.count = count
        found.distribution.mean = mean
        buckets = found.distribution.bucket_options.exponential_buckets
        buckets.growth_factor, buckets.scale, buckets.num_finite_buckets = 2.0, 1.0, 12
        found.distribution.bucket_counts.extend([0] * 6 + [count])
    return made


class MetricServer:
    """A server on a free port, which keeps what it was asked in `requests`."""

    def __init__(
        self,
        answers: Answers,
        listed: Sequence[str] | None = None,
        address: str = "127.0.0.1:0",
        service: str = SERVICE,
        slow_s: float = 0.0,
        status: Any = None,
    ) -> None:
        """`listed` is what it says it has; None is what it has. Under another `service` it is
        not libtpu's. `status` answers GetTpuRuntimeStatus.
        """
        self.answers = answers
        self.listed = listed
        self.requests: list[tuple[str, Any]] = []
        """Method and request."""
        self.lists_at_once = False
        """Whether only its other answers are slow."""
        self._slow = slow_s
        self._status = status
        self._end = threading.Event()
        methods = {GET_METRIC: self._metric, LIST_METRICS: self._list, GET_STATUS: self._cores}
        handlers = {
            path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(self._answering(answer))
            for path, answer in methods.items()
        }
        self._server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        handler = grpc.method_handlers_generic_handler(service, handlers)
        self._server.add_generic_rpc_handlers((handler,))
        self.port = self._server.add_insecure_port(address)
        self._server.start()

    def asked(self) -> list[str]:
        """The metrics it was asked for, in order."""
        return [request.metric_name for _, request in list(self.requests) if _ == "MetricRequest"]

    def stop(self) -> None:
        """End it, with its port."""
        self._end.set()
        self._server.stop(None).wait()

    def _answering(self, answer: Any) -> Any:
        def behave(raw: bytes, context: Any) -> bytes:
            if not (self.lists_at_once and answer == self._list):
                self._end.wait(self._slow)
            return answer(raw, context).SerializeToString()  # type: ignore[no-any-return]

        return behave

    def _parse(self, message: str, raw: bytes, context: Any) -> Any:
        request = messages()[message].FromString(raw)
        if request.SerializeToString() != raw:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "fields that are not in the protocol")
        self.requests.append((message, request))
        return request

    def _metric(self, raw: bytes, context: Any) -> Any:
        name = self._parse("MetricRequest", raw, context).metric_name
        found = self.answers.get(name, grpc.StatusCode.NOT_FOUND)
        if isinstance(found, grpc.StatusCode):
            context.abort(found, f"Metric not found: {name}")
        return found

    def _list(self, raw: bytes, context: Any) -> Any:
        self._parse("ListSupportedMetricsRequest", raw, context)
        made = messages()["ListSupportedMetricsResponse"]()
        for name in self.answers if self.listed is None else self.listed:
            made.supported_metric.add(metric_name=name)
        return made

    def _cores(self, raw: bytes, context: Any) -> Any:
        self._parse("GetTpuRuntimeStatusRequest", raw, context)
        if self._status is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such thing")
        return self._status


@contextmanager
def serving(answers: Answers, **how: Any) -> Iterator[MetricServer]:
    """A MetricServer for as long as it is wanted."""
    server = MetricServer(answers, **how)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that accepts and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


class Saying(NamedTuple):
    """A port that says the same to everybody."""

    port: int
    peers: list[Any]
    """Who came."""


@contextmanager
def saying_port(words: bytes) -> Iterator[Saying]:
    """A port that says the same to everybody, and hangs up: a web server, say."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        peers: list[Any] = []

        def run() -> None:
            while True:
                try:
                    client, peer = server.accept()
                except OSError:
                    return
                peers.append(peer)
                with client:
                    client.settimeout(10)
                    try:
                        client.recv(4096)
                        client.sendall(words)
                    except OSError:
                        pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield Saying(server.getsockname()[1], peers)
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


class ServerProcess:
    """A server with four devices in a process of its own, which can be stopped and killed."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self) -> None:
        """Kill it, whatever state it is in."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def server_process(*arguments: str, **environment: str) -> Iterator[ServerProcess]:
    """A ServerProcess for as long as it is wanted."""
    server = ServerProcess(*arguments, **environment)
    try:
        yield server
    finally:
        server.end()


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:0"
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = MetricServer(of_devices(range(first, first + 4)), address=where)
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
