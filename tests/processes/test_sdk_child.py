"""The real child: with the libtpu from PyPI against real servers in a network of its own, and with
packages of that name that do their worst.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.waits import until

from tpusmi.model import ABSENT, FAILED, OK, Host, Outcome
from tpusmi.sources.libtpu import child
from tpusmi.sources.libtpu.sdk import LibtpuSdk

CHILD = os.path.abspath(child.__file__)
LIMIT_S = 60.0

LIBTPU = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu has no release for this Python"
)
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root for a network of its own")

PRELUDE = """
import ctypes, fcntl, json, os, socket, struct, sys, time
assert ctypes.CDLL(None).unshare(0x40000000) == 0  # CLONE_NEWNET
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
sys.path[:0] = sys.argv[1:]

from tpusmi.model import Host
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.libtpu.sdk import LibtpuSdk

def read_all(everything):
    names = {n.metric for n in NAMES} if everything else set()
    source = LibtpuSdk(Host(), lambda: True, lacking=lambda _: names)
    until = time.monotonic() + 20
    found = source.read(time.monotonic())
    while found.libtpu_version is None and time.monotonic() < until:
        found = source.read(time.monotonic())
    pid = source._child.pid
    source.close()
    print(json.dumps({"pid": pid, **found._asdict()}))
"""

SERVERS = """
from concurrent import futures
import grpc
from tpusmi import metricproto
from tpusmi.sources.libtpu.names import EXECUTION, GAUGE, LATENCY, NAMES, ORDINAL

M = metricproto.messages()
IDS = (13, 8, 9, 12)

def metric(name):
    answer = M["MetricResponse"]()
    answer.metric.name = name
    (known,) = [n for n in NAMES if n.grpc == name]
    for id in IDS if known.shape != LATENCY else IDS[:1]:
        row = answer.metric.metrics.add()
        if known.shape == GAUGE:
            row.attribute.value.int_attr = id
        else:
            pairs = row.attribute.value.kvlist_attr.attributes
            first = "8MB+" if known.shape == LATENCY else str(id)
            pairs.add(key="device_ordinal").value.string_attr = first
            second = "grpc" if known.shape == LATENCY else "tensorcore"
            pairs.add(key="core_type").value.string_attr = second
        if known.shape in (LATENCY, EXECUTION):
            d = row.distribution
            d.count, d.mean = 1000, 123.456
            buckets = d.bucket_options.exponential_buckets
            buckets.num_finite_buckets, buckets.growth_factor, buckets.scale = 30, 1.5, 1
            counts = [0] * 32
            counts[10], counts[12], counts[20] = 500, 400, 100
            d.bucket_counts.extend(counts)
        elif known.shape == ORDINAL or name.endswith("bytes"):
            row.gauge.as_int = 100 + id
        else:
            row.gauge.as_double = id + 0.25
    return answer.SerializeToString()

def field(number, wire, value):  # enough of protobuf for the service on 8353
    tag = bytes([number << 3 | wire])
    return tag + (bytes([len(value)]) + value if wire == 2 else value)

def host_metrics():
    chips = b""
    for i in range(4):
        used = field(1, 0, b"\\x01") + field(2, 5, struct.pack("<f", 10.125 * (i + 1)))
        throttle = field(1, 0, b"\\x01") + field(2, 0, bytes([1 + i])) + field(3, 0, bytes([i]))
        link = field(1, 2, b"tray1.chip%d.ici0.int" % (1 + i)) + field(2, 0, bytes([i]))
        health = field(1, 2, throttle) + field(2, 2, link)
        chip = field(2, 2, used) + field(3, 2, b"%d" % i) + field(4, 2, health)
        chips += field(1, 2, chip)
    return chips

class Handler(grpc.GenericRpcHandler):
    def service(self, call):
        def answer(request, context):
            if call.method == "/libtpu.tpunetd.VBARControl/GetHostMetrics":
                return host_metrics()
            assert call.method == metricproto.GET_METRIC, call.method
            return metric(M["MetricRequest"].FromString(request).metric_name)
        return grpc.unary_unary_rpc_method_handler(answer)

server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Handler(),))
for port in (8431, 8353):
    assert server.add_insecure_port(f"127.0.0.1:{port}")
server.start()
os.environ["http_proxy"] = "http://127.0.0.1:1"
"""


def in_own_network(code: str) -> dict[str, Any]:
    """What the code prints last as JSON, run where no port is anybody else's."""
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, *sys.path],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert found.returncode == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def values(found: dict[str, Any], metric: str) -> dict[int, float]:
    return {id: value for name, (_, id), value, *_ in found["readings"] if name == metric}


@LIBTPU
@ROOT
def test_without_a_tpu_the_real_sdk_has_no_values_and_leaves_nothing_behind() -> None:
    found = in_own_network("read_all(False)")
    assert found["status"] == ABSENT
    assert found["libtpu_version"]
    assert found["message"].startswith(f"libtpu {found['libtpu_version']} has no values: ")
    assert (found["readings"], found["links"], found["notes"]) == ([], [], [])
    assert not glob.glob(f"/tmp/tpu_logs/*.{found['pid']}")
    assert not glob.glob(f"/tmp/tpu_driver*.{found['pid']}")
    assert not os.path.exists(f"/proc/{found['pid']}")


@LIBTPU
@ROOT
def test_the_real_sdk_reads_what_real_servers_serve() -> None:
    found = in_own_network(SERVERS + "read_all(True)")
    assert (found["status"], found["notes"]) == (OK, [])
    assert values(found, "hbm_limit_bytes") == {0: 108, 1: 109, 2: 112, 3: 113}
    assert values(found, "hbm_used_bytes") == {0: 108, 1: 109, 2: 112, 3: 113}
    assert values(found, "duty_cycle_percent") == {0: 8.25, 1: 9.25, 2: 12.25, 3: 13.25}
    assert values(found, "hlo_queue_size") == {8: 108, 9: 109, 12: 112, 13: 113}
    for part, value in {"mean": 123.46, "p50": 86.5, "p90": 2216.84, "p999": 3314.17}.items():
        expected = dict.fromkeys((8, 9, 12, 13), value)
        assert values(found, f"hlo_execution_time_us.{part}") == expected
    if sys.version_info >= (3, 11):  # with a libtpu of today
        assert values(found, "idle_s") == {0: 8.25, 1: 9.25, 2: 12.25, 3: 13.25}
        shown = values(found, "tensorcore_utilization_percent")
        assert shown == pytest.approx({i: 10.125 * (i + 1) for i in range(4)}, abs=0.01)
        assert values(found, "throttle_percent") == {0: 0, 1: 10, 2: 20, 3: 30}
        assert [link[::2] for link in found["links"]] == [[0, 0], [1, 1], [2, 2], [3, 3]]
        latencies = {(name, label): numbers for name, label, numbers, *_ in found["latencies"]}
        numbers = [None, 123.46, 86.5, 2216.84, 2771.05, 3314.17]
        assert latencies["buffer_transfer_latency_us", "8MB+"] == numbers
        assert latencies["tcp_min_rtt_us", ""] == numbers
        assert len(latencies) == 8


GOOD = """
class Metric:
    def __init__(self, name): self.name = name
    def description(self): return "of " + self.name
    def data(self): return ["1.00"]
def list_supported_metrics(): return ["tensorcore_util", "ici_link_health"]
def get_metric(name): return Metric(name)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a libtpu whose SDK is that code, found before any other."""

    def make(code: str, module: str = "tpumonitoring") -> None:
        sdk = tmp_path / "libtpu" / "sdk"
        sdk.mkdir(parents=True)
        (tmp_path / "libtpu" / "__init__.py").write_text("__version__ = '0.0.1'")
        (sdk / "__init__.py").write_text("")
        (sdk / f"{module}.py").write_text(textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return make


def read() -> Outcome:
    """What the source says with our own child, once it has started."""
    source = LibtpuSdk(Host(sdk_command=(sys.executable, CHILD)), lambda: True)
    until_s = time.monotonic() + LIMIT_S
    try:
        found = source.read(time.monotonic())
        while found.message.endswith("is starting") and time.monotonic() < until_s:
            found = source.read(time.monotonic())
        return found
    finally:
        source.close()


@pytest.mark.parametrize("module", ["tpumonitoring", "monitoring"])
def test_the_sdk_is_found_by_its_new_and_its_old_name(
    package: Callable[..., None], module: str
) -> None:
    package(GOOD, module)
    found = read()
    assert (found.status, found.libtpu_version) == (OK, "0.0.1")
    assert found.readings[0].value == 1.0


def test_what_the_sdk_prints_anywhere_does_not_break_its_answer(
    package: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    printing = "import os\nfor fd in (1, 2): os.write(fd, b'E0000 log line\\n')\nprint('hello')\n"
    package(printing + GOOD.replace("def get_metric(name): ", "def get_metric(name): print(3); "))
    assert read().status == OK
    assert capfd.readouterr() == ("", "")


def test_a_metric_that_raises_costs_only_itself(package: Callable[..., None]) -> None:
    failing = "def get_metric(name): 'ici' in name and 1 / 0; "
    package(GOOD.replace("def get_metric(name): ", failing))
    found = read()
    assert (found.status, len(found.readings)) == (OK, 1)
    assert found.notes == ("ici_link_health: ZeroDivisionError: division by zero",)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise ImportError('no libstdc++')", "cannot be used: ImportError: no libstdc++"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed (signal 11)"),
        ("import os; os._exit(7)", "ended (exit code 7)"),
        ("raise SystemExit('bye')", "ended (exit code 1): bye"),
    ],
)
def test_an_import_that_fails_is_told(
    package: Callable[..., None], capfd: pytest.CaptureFixture[str], code: str, told: str
) -> None:
    package(code)
    found = read()
    assert (found.status, found.message) == (FAILED, f"libtpu's SDK {told}")
    assert capfd.readouterr() == ("", "")


def test_a_libtpu_without_such_an_sdk_is_told(package: Callable[..., None]) -> None:
    package("", "other")
    assert "too old" in read().message


VIEWER = """
import sys, time
sys.path[:0] = sys.argv[2:]
from tpusmi.model import Host
from tpusmi.sources.libtpu.sdk import LibtpuSdk
source = LibtpuSdk(Host(sdk_command=(sys.executable, sys.argv[1])), lambda: True)
source.read(time.monotonic())
print(source._child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
@pytest.mark.parametrize(
    "code", [GOOD, "import ctypes; ctypes.PyDLL(None).sleep(600)"], ids=["waits", "hangs in C"]
)
def test_the_child_never_outlives_the_viewer(
    package: Callable[..., None], code: str, ending: signal.Signals | None
) -> None:
    package(code)
    viewer = subprocess.Popen(
        [sys.executable, "-c", VIEWER, CHILD, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with viewer:
        assert viewer.stdout is not None
        assert viewer.stdin is not None
        pid = int(viewer.stdout.readline())
        assert os.path.exists(f"/proc/{pid}")
        if ending is None:
            viewer.stdin.close()
        else:
            viewer.send_signal(ending)
        viewer.wait(LIMIT_S)
    until(lambda: not is_running(pid), 30, "the end of the child")


def is_running(pid: int) -> bool:
    """Whether it still does anything: whoever inherits a dead one may not reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_child_imports_nothing_of_ours() -> None:
    found = subprocess.run(
        [sys.executable, "-X", "importtime", CHILD],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "json" in imported
    assert not {name for name in imported if name.partition(".")[0] in ("tpusmi", "libtpu")}
    assert (found.returncode, found.stdout) == (0, "")
