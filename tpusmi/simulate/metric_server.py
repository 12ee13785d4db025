"""The ports of a simulated process: libtpu's metrics service, or what a fault puts there,
and the service for what only hardware knows.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tpusmi import metricproto
from tpusmi.simulate.host import PortBusyError
from tpusmi.simulate.metric_answers import Answers
from tpusmi.simulate.running import TRAY, Running
from tpusmi.text import clean

IPV4, IPV6 = "127.0.0.1", "::1"
"""Reachable from this machine alone."""
WORKERS = 16
BACKLOG = 64
PORT_TRIES = 1000
KINDS = ("addresses-local", "no-server", "silent", "http", "not-libtpu")
"""Faults that replace the server, the strongest first."""

CURE = "install tpusmi into an environment of its own (uv tool install, or pipx install)"

Stop = Callable[[], None]
Method = Callable[[bytes], bytes]
"""Answers the calls of one gRPC path; an UnsupportedError is the status NOT_FOUND."""


class Port:
    """The metrics port of a process; what is on it changes with the faults."""

    def __init__(self, running: Running, process: int, port: int) -> None:
        self._running = running
        self._process = process
        self._port = port
        self._kind: tuple[str, ...] = ()
        self._stop: Stop = _nothing

    def update(self) -> None:
        """Open what the faults ask for, if that is not open yet. Raises PortBusyError."""
        faults = self._running.faults
        what = next((kind for kind in KINDS if kind in faults), "libtpu")
        hosts = (IPV6,) if "ipv6-only" in faults else (IPV4, IPV6)
        if (what, *hosts) == self._kind:
            return
        self._stop()
        self._stop = _nothing
        self._kind = (what, *hosts)
        if what in ("no-server", "addresses-local"):
            return
        if what in ("libtpu", "not-libtpu"):
            methods = runtime_metrics(self._running, self._process) if what == "libtpu" else {}
            self._stop = open_grpc(methods, hosts, self._port)
        else:
            self._stop = _open_sockets(hosts, self._port, answering=what == "http")


class UnsupportedError(Exception):
    """The server does not know the requested metric."""


def runtime_metrics(running: Running, process: int) -> dict[str, Method]:
    """RuntimeMetricService, as gRPC calls it."""
    answers = Answers(running, process)

    def metric(request: bytes) -> bytes:
        name = metricproto.messages()["MetricRequest"].FromString(request).metric_name
        answer = answers.metric(name)
        if answer is None:
            raise UnsupportedError(f"unsupported metric name {name}")
        return answer

    def names(request: bytes) -> bytes:
        message = metricproto.messages()["ListSupportedMetricsRequest"].FromString(request)
        return answers.names(message.filter)

    def status(request: bytes) -> bytes:
        message = metricproto.messages()["GetTpuRuntimeStatusRequest"].FromString(request)
        return answers.status(message.include_hlo_info)

    def slowed(method: Method) -> Method:
        def answer(request: bytes) -> bytes:
            running.refresh()
            time.sleep(float(running.faults.get("slow", "0")))
            return method(request)

        return answer

    return {
        metricproto.GET_METRIC: slowed(metric),
        metricproto.LIST_METRICS: slowed(names),
        metricproto.GET_STATUS: slowed(status),
    }


def open_grpc(methods: Mapping[str, Method], hosts: tuple[str, ...], port: int) -> Stop:
    """Serve those methods, by their paths, on that port of those hosts. Raises PortBusyError."""
    from concurrent.futures import ThreadPoolExecutor

    _check_grpc()
    import grpc

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc is untyped
        def service(self, call: Any) -> Any:
            method = methods.get(call.method)
            if method is None:
                return None

            def answer(request: bytes, context: Any) -> bytes:
                try:
                    return method(request)
                except UnsupportedError as error:
                    context.abort(grpc.StatusCode.NOT_FOUND, str(error))
                    raise  # abort() has raised

            return grpc.unary_unary_rpc_method_handler(answer)

    # Without so_reuseport=0 two servers could share a port, each taking half of the calls.
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((Handler(),))
    for host in usable(hosts):
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = server.add_insecure_port(address)
        except RuntimeError as error:
            raise PortBusyError(f"port {port} is in use") from error
        if bound != port:
            raise PortBusyError(f"port {port} is in use")
    server.start()
    return lambda: server.stop(0).wait(5)


def _check_grpc() -> None:
    """End this process with a sentence where grpcio is broken, or another package has its name."""
    try:
        import grpc
    except Exception as error:  # noqa: BLE001  # a broken package may raise anything
        sys.exit(f"grpcio cannot be loaded ({clean(str(error), 160)}): {CURE}")
    if not hasattr(grpc, "GenericRpcHandler"):
        where = getattr(grpc, "__file__", None) or getattr(grpc, "__path__", "")
        sys.exit(f"the package grpc that is found here ({where}) is not grpcio: {CURE}")


def _open_sockets(hosts: tuple[str, ...], port: int, answering: bool) -> Stop:
    """Sockets that the kernel accepts connections for; none answers, or a web server does."""
    listening = [listen(host, port) for host in usable(hosts)]
    if answering:
        for one in listening:
            threading.Thread(target=_serve_pages, args=(one,), daemon=True).start()

    def stop() -> None:
        for one in listening:
            one.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
            one.close()

    return stop


def _serve_pages(listening: socket.socket) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n"
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # closed: the faults have changed
        with connection:
            connection.settimeout(1.0)
            try:
                connection.recv(4096)
                connection.sendall(page)
            except OSError:
                pass


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises PortBusyError."""
    one = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ":" in host:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        one.bind((host, port))
        one.listen(BACKLOG)
    except OSError as error:
        one.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusyError(f"port {port} is in use") from error
        raise PortBusyError(f"port {port}: {os.strerror(error.errno or 0)}") from error
    return one


def usable(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that this machine has: many containers are without IPv6."""
    return tuple(host for host in hosts if _can_listen(host, 0))


def free_port() -> int:
    """A port that is free now, on either address. Raises PortBusyError."""
    hosts = usable((IPV4, IPV6))
    for _ in range(PORT_TRIES):
        with listen(hosts[0], 0) as first:
            port: int = first.getsockname()[1]
            if all(_can_listen(host, port) for host in hosts[1:]):
                return port
    raise PortBusyError("no port is free")


def _can_listen(host: str, port: int) -> bool:
    """False when another socket listens there, and for a host that this machine does not have."""
    try:
        listen(host, port).close()
    except (PortBusyError, OSError):
        return False
    return True


def _nothing() -> None:
    pass


METRICS_PORT, HARDWARE_PORT = 8431, 8353
"""The only ports on which the SDK looks: for the runtime's metrics, and for those of the host."""
TENSORCORE = 1
"""UtilizationMetricType."""


def hardware_metrics(running: Running) -> dict[str, Method]:
    """VBARControl, the service on a TPU host that libtpu's SDK asks for what only hardware knows.

    As libtpu 0.0.42.1 asks it: GetHostMetrics.
    """

    def host_metrics(request: bytes) -> bytes:
        running.refresh()
        response = metricproto.messages()["GetHostMetricsResponse"]()
        for device, percent in enumerate(running.mxu_percents()):
            row = response.metrics_data.add(chip_identifier=str(device))
            row.timestamp.seconds = int(time.time())
            row.metrics.add(metric_type=TENSORCORE, utilization=percent)
        _add_health(response, running)
        return bytes(response.SerializeToString())

    return {metricproto.GET_HOST_METRICS: host_metrics}


def _add_health(response: Any, running: Running) -> None:
    """Health belongs to a chip: it goes into the row of each chip's first device."""
    first = {d["chip"]: d["index"] for d in reversed(running.description["devices"])}
    rows = [response.metrics_data[index].health for _, index in sorted(first.items())]
    for chip, score in enumerate(running.throttle_scores()[: len(rows)]):
        throttling = rows[chip].chip_throttling_metric
        throttling.tray_id, throttling.chip_id = TRAY, chip
        throttling.throttling_score = score
    for chip, name, health in running.links():
        if chip < len(rows):
            rows[chip].ici_link_metrics.add(port_id=name, link_health=health)
