"""The agent in a job with a TPU backend, which reads the metrics server of its own process.

There is no TPU here: the backend is a fake, and so is libtpu's server. All else is real.
"""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clocks import Stopwatch
from support.jobs import Job, job, seen
from support.waits import until

from tpusmi.collect import Collector, open_collector
from tpusmi.model import DeviceKey, Host, Process, Snapshot
from tpusmi.wire.reader import Sample, SegmentReader

TESTS = str(Path(__file__).parent.parent)

TPU = (
    f"sys.path.append({TESTS!r})"
    + """
import contextlib, threading, time, types
class Device:
    platform = "tpu"
    core_on_chip = process_index = 0
    def __init__(self, id):
        self.id = self.local_hardware_id = id
        self.device_kind, self.coords = KIND, (id, 0, 0)
    def memory_stats(self): return {"bytes_in_use": 5, "bytes_limit": 10}
devices = [Device(id) for id in IDS]
backend = types.SimpleNamespace(
    local_devices=lambda: devices, devices=lambda: devices * 4, platform_version="fake")
def refuse(backend): raise RuntimeError("no profile")
jax = types.ModuleType("jax"); jax.__version__ = "0.10.2"
jax.__spec__ = types.SimpleNamespace(_initializing=False)
jax.profiler = types.SimpleNamespace(device_memory_profile=refuse)
bridge = types.ModuleType("jax._src.xla_bridge")
bridge._backend_lock, bridge._default_backend = threading.Lock(), backend
sys.modules.update({"jax": jax, "jax._src.xla_bridge": bridge})
"""
)
SERVER = """
from support import metric_servers as m
answers = m.of_devices(SERVED)
answers[m.IDLE] = m.gauge(m.IDLE, {i: 0.25 for i in SERVED})
server = m.MetricServer(answers)
os.environ["TPU_RUNTIME_METRICS_PORTS"] = str(server.port)
"""
SILENT = """
import socket
server = socket.create_server(("127.0.0.1", 0))
os.environ["TPU_RUNTIME_METRICS_PORTS"] = str(server.getsockname()[1])
"""
GO = """
from tpusmi.agent import segment; segment.FACTS_LEAST_S = 0.0
tpusmi.start(interval_s=0.05)
say("ready"); hear()
"""


@contextmanager
def tpu_job(
    tmp_path: Path,
    server: str = SERVER,
    go: str = GO,
    ids: tuple[int, ...] = (8, 9, 12, 13),
    served: tuple[int, ...] = (8, 9, 12, 13),
    kind: str = "TPU v5 lite",
    **more: str | None,
) -> Iterator[tuple[Job, Path]]:
    """A job on a fake TPU that has said it is ready, and the directory of its segment."""
    place = tmp_path / "segments"
    place.mkdir()
    code = TPU + server + go
    for name, value in {"KIND": kind, "IDS": ids, "SERVED": served}.items():
        code = code.replace(name, repr(value))
    with job(place, textwrap.dedent(code), **more) as running:
        assert running.hear() == "ready"
        yield running, place


def collector(directory: Path) -> Collector:
    """A reader that asks no metrics server itself: what it knows of one, the agent has told."""
    return open_collector(Host(segment_dir=str(directory), metrics_ports=(), sdk_command=()))


def of_devices(metric: str, snapshot: Snapshot, process: Process) -> list[object]:
    return [snapshot.value(metric, d.key) for d in snapshot.devices_of(process.key)]


def is_busy(snapshot: Snapshot, process: Process) -> bool:
    return snapshot.value("duty_cycle_percent", DeviceKey(process.key, 0)) is not None


def test_a_job_shows_the_duty_cycle_of_its_own_devices(tmp_path: Path) -> None:
    with tpu_job(tmp_path) as (running, place):
        snapshot, process = seen(collector(place), running.pid, is_busy)
        assert of_devices("duty_cycle_percent", snapshot, process) == [50.0, 51.0, 52.0, 53.0]
        assert of_devices("idle_s", snapshot, process) == [0.25] * 4
        # The server has none of these: unknown, not 0.
        assert of_devices("hbm_bandwidth_utilization_percent", snapshot, process) == [None] * 4
        assert running.end() == 0
        assert running.stderr == ""


def test_per_chip_rows_of_a_v3_are_not_passed_off_as_those_of_cores(tmp_path: Path) -> None:
    with tpu_job(tmp_path, ids=(0, 1, 2, 3), served=(0, 1), kind="TPU v3") as (running, place):
        (name,) = until(lambda: os.listdir(place))

        def asked() -> Sample | None:
            sample = SegmentReader(f"{place}/{name}").newest()
            return sample if sample and "utilization_at_s" in sample.process else None

        sample = until(asked)
        assert len(sample.devices) == 4
        assert all("duty_cycle_percent" not in device for device in sample.devices)
        assert running.end() == 0


def test_a_server_that_hangs_delays_no_sample(tmp_path: Path) -> None:
    patient = """
from tpusmi.sources.libtpu import client
from tpusmi.agent import utilization
client.DEADLINE_S = client.READ_MOST_S = 300.0  # longer than this test
utilization.LOOK_EVERY_S = 0.2
"""
    asked = "server.accept(); say(time.monotonic()); hear()\n"
    with tpu_job(tmp_path, SILENT + patient, GO + asked) as (running, place):
        (name,) = until(lambda: os.listdir(place))
        running.tell("accept")
        asked_s = float(running.hear())

        def later() -> bool:
            past = SegmentReader(f"{place}/{name}").past()
            return sum(sample.at_s > asked_s for sample in past) > 4

        until(later, what="samples while the server is waited for")
        assert running.end() == 0
        assert running.stderr == ""


@pytest.mark.parametrize("server", ["", SILENT])
def test_a_job_whose_server_says_nothing_has_no_duty_cycle_and_ends_in_time(
    tmp_path: Path, server: str
) -> None:
    with tpu_job(tmp_path, server) as (running, place):
        snapshot, process = seen(
            collector(place),
            running.pid,
            lambda s, p: s.devices_of(p.key) and p.phase != "starting",
        )
        assert of_devices("duty_cycle_percent", snapshot, process) == [None] * 4
        with Stopwatch() as end:
            assert running.end() == 0
        assert end.seconds() < 5.0


def test_without_a_server_in_the_process_grpc_is_not_loaded(tmp_path: Path) -> None:
    go = GO + 'time.sleep(1.0); say("grpc" in sys.modules, "google.protobuf" in sys.modules)'
    with tpu_job(tmp_path, "", go) as (running, _):
        running.tell("go")
        assert running.hear() == "False False"


def test_it_is_switched_off_by_a_variable(tmp_path: Path) -> None:
    go = GO + "from tpusmi import agent; say(agent._sampler._utilization.is_alive())"
    with tpu_job(tmp_path, go=go, TPUSMI_UTILIZATION="0") as (running, place):
        seen(collector(place), running.pid, lambda s, p: s.devices_of(p.key))
        running.tell("go")
        assert running.hear() == "False"


def test_an_unexpected_error_switches_it_off_with_a_warning(tmp_path: Path) -> None:
    go = (
        """
from tpusmi.agent import utilization
from tpusmi.agent.utilization import OwnServer
utilization.AGAIN_S = (0.1, 0.1)
def fail(self, now_s): raise TypeError("a new grpc")
OwnServer.read = fail
"""
        + GO
    )
    with tpu_job(tmp_path, go=go) as (running, place):
        _, process = seen(
            collector(place),
            running.pid,
            lambda s, p: any(w.code == "no_utilization" for w in p.warnings),
        )
        (warning,) = [w for w in process.warnings if w.code == "no_utilization"]
        assert "TypeError: a new grpc" in warning.message
        assert running.end() == 0
        assert running.stderr == ""


def test_a_forked_child_lets_go_of_the_server_and_may_have_an_agent_of_its_own(
    tmp_path: Path,
) -> None:
    go = (
        GO
        + """
child = os.fork()
if not child:
    tpusmi.step(); tpusmi.start(); tpusmi.stop()
    sys.exit(7)
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); hear()
"""
    )
    with tpu_job(tmp_path, go=go) as (running, place):
        reader = collector(place)
        seen(reader, running.pid, is_busy)
        running.tell("fork")
        assert running.hear() == "7"
        at_s = time.monotonic()

        def newer(snapshot: Snapshot, process: Process) -> bool:
            found = snapshot.values.get((DeviceKey(process.key, 0), "duty_cycle_percent"))
            return found is not None and snapshot.at_s - (found.age_s or 0.0) > at_s

        seen(reader, running.pid, newer)
        assert running.end() == 0


def test_mfu_is_over_all_devices_of_the_job(tmp_path: Path) -> None:
    """16 v5e devices can do 197 TFLOP/s each; the job does a tenth of that."""
    go = (
        GO
        + """
tpusmi.step(flops=0.0)
start = time.monotonic(); told = 0.0
while True:
    due = (time.monotonic() - start) * 16 * 19.7e12
    tpusmi.step(flops=due - told); told = due
    time.sleep(0.02)
"""
    )

    def settled(snapshot: Snapshot, process: Process) -> bool:
        return snapshot.value("mfu_percent", process.key) == pytest.approx(10.0, rel=0.15)

    with tpu_job(tmp_path, "", go) as (running, place):
        running.tell("go")
        snapshot, process = seen(collector(place), running.pid, settled)
        assert snapshot.value("flops_per_s", process.key) == pytest.approx(3.15e14, rel=0.15)
