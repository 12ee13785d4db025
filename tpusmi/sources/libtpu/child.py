"""Reads libtpu's SDK in a process of its own, since it can hang, crash and print anything.

A line with a JSON list of metric names, or null for all of them, is answered by a line with a JSON
object. Run by path, importing nothing of ours: every viewer on a TPU host starts one and waits.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIFELINE = 3
"""The descriptor of a pipe into which the viewer never writes: it ends when the viewer does."""
ENOUGH_S = 0.5
"""No further metric is asked for that long after the first: a mute server costs each its timeout.
"""
MODULES = ("tpumonitoring", "monitoring")
"""The SDK's module by release, newest first."""

QUIET = {
    # Without this the import asks the metadata server, for minutes where there is none.
    "TPU_SKIP_MDS_QUERY": "1",
    # The timeout of its requests, instead of 20. The first one also waits for libtpu.so to load,
    # for which one second can be too short.
    "TPU_SDK_GRPC_TIMEOUT_SEC": "2",
    # libtpu writes logs and points /tmp/tpu_logs/tpu_driver.INFO at its own, away from those of the
    # job that is being watched. No file can be made here; any other bad place means /tmp to it.
    "TPU_LOG_DIR": "/proc/self/fdinfo",
    # Warnings say why there is no data; they go to stderr, which the viewer reads.
    "TPU_MIN_LOG_LEVEL": "1",
    "TPU_STDERR_LOG_LEVEL": "1",
}
PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def main() -> None:
    """Answer every line until stdin ends."""
    die_with_the_viewer()
    leave_no_trace()
    # C++ also prints to descriptor 1: only this copy of it carries answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sdk: Any = None
    for line in sys.stdin:
        started_s = time.monotonic()
        answer: dict[str, Any] = {"version": None, "supported": [], "metrics": {}, "errors": {}}
        try:
            sdk = sdk or load()
            answer["version"] = version()
            answer.update(read(sdk, json.loads(line)))
        except Exception as error:  # noqa: BLE001  # whatever a foreign library raises is data
            answer["errors"]["import" if sdk is None else "sdk"] = described(error)
        answer["took_s"] = time.monotonic() - started_s
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def die_with_the_viewer() -> None:
    """Have the kernel kill us when the viewer ends, even while a library hangs and holds the GIL.

    Not PR_SET_PDEATHSIG: that is sent when the *thread* that started us ends, and the viewer's
    threads come and go.
    """
    import fcntl
    import select
    import signal

    try:
        fcntl.fcntl(LIFELINE, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(LIFELINE, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(LIFELINE, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    except OSError:  # started by hand: then the end of stdin is all there is
        return
    if select.select([LIFELINE], [], [], 0)[0]:  # it ended before we listened
        os._exit(1)


def leave_no_trace() -> None:
    """Keep libtpu off the network and the disk, and import no module that lies beside this file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(QUIET)
    for name in PROXIES:  # gRPC would send requests for localhost there
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.abspath(path) for path in sys.path if path]
    sys.path[:] = [path for path in paths if path != here]
    os.chdir("/")


def load() -> Any:
    """The SDK's module. Raises what its import raises."""
    import importlib

    sdk = importlib.import_module("libtpu.sdk")
    for name in MODULES:
        if hasattr(sdk, name):
            return getattr(sdk, name)
        try:
            return importlib.import_module(f"libtpu.sdk.{name}")
        except ModuleNotFoundError:
            continue
    raise ImportError("this libtpu has no sdk.tpumonitoring: too old")


def version() -> str | None:
    """The version of the libtpu that is loaded, where it says."""
    text = getattr(sys.modules["libtpu"], "__version__", None)
    return None if text is None else str(text)


def read(sdk: Any, names: list[str] | None) -> dict[str, Any]:
    """Those metrics, as far as they are supported and there is time: each fails alone. None reads
    all.
    """
    supported = [str(name) for name in sdk.list_supported_metrics()]
    metrics: dict[str, Any] = {}
    errors: dict[str, str] = {}
    until_s = float("inf")  # the first one loads libtpu.so
    for name in supported if names is None else [n for n in names if n in supported]:
        if time.monotonic() >= until_s:
            errors[name] = "not asked: the ones before it took too long"
            continue
        try:
            metric = sdk.get_metric(name)
            data = [str(item) for item in metric.data()]
            metrics[name] = {"description": str(metric.description()), "data": data}
        except Exception as error:  # noqa: BLE001  # whatever a foreign library raises is data
            errors[name] = described(error)
        until_s = min(until_s, time.monotonic() + ENOUGH_S)
    return {"supported": supported, "metrics": metrics, "errors": errors}


def described(error: Exception) -> str:
    """An exception as one short text."""
    return f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    main()
