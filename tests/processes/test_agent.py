"""The agent inside real JAX jobs, and readers beside them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment, tpusmi
from support.free_ports import free_port
from support.jobs import collector, job, seen
from support.waits import LIMIT_S, until

from tpusmi.collect import open_collector
from tpusmi.model import DeviceKey, Host, Process, Snapshot
from tpusmi.wire.reader import SegmentReader

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX here")
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount")

TRAINING = """
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp
keep = [jax.device_put(jnp.ones(1000 * (i + 1), jnp.float32), d)
        for i, d in enumerate(jax.devices())]
train_step = jax.jit(lambda x: (x @ x).sum())
def work():
    train_step(jnp.ones((8, 8))).block_until_ready()
    tpusmi.step()
for _ in range(5): work()
say("ready")
while True:
    hear(); work()
    say("done")
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


def segments_in(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def stepped(count: int) -> object:
    def wanted(s: Snapshot, p: Process) -> bool:
        return s.value("steps", p.key) == count and s.value("live_arrays", p.key) is not None

    return wanted


def test_two_jobs_at_once_are_told_apart_and_their_numbers_are_those_of_jax(
    directory: Path,
) -> None:
    asking = TRAINING.replace(
        'say("done")',
        "import gc; gc.collect()\n    say(sum(a.nbytes for a in jax.live_arrays()))",
    )
    with job(directory, asking) as one, job(directory, asking) as two:
        one.hear(), two.hear()
        one.tell("step")
        live_bytes = int(one.hear())
        reader = collector(directory)
        snapshot, process = seen(
            reader,
            one.pid,
            lambda s, p: s.value("live_array_bytes", p.key) == live_bytes and stepped(6)(s, p),
        )
        seen(reader, two.pid, stepped(5))
        assert process.phase in ("running", "compiling")
        assert process.facts["platform"] == "cpu"
        assert process.facts["jax_version"] == importlib.metadata.version("jax")
        assert "-c" in process.command
        devices = snapshot.devices_of(process.key)
        assert [d.id for d in devices] == [0, 1]
        # Device 1 holds one array of 2,000 floats; device 0 its own and some small ones.
        assert snapshot.value("live_array_bytes", DeviceKey(process.key, 1)) == 8000
        assert snapshot.value("live_arrays", DeviceKey(process.key, 1)) == 1
        assert (snapshot.value("compilations", process.key) or 0) >= 2
        assert (snapshot.value("compile_s", process.key) or 0) > 0
        assert process.profile is not None
        assert (process.profile.sites[0].file, process.profile.sites[0].bytes) == (
            "<string>",
            12000,
        )
        # The CPU has no memory_stats(): unknown, not 0.
        assert snapshot.value("hbm_used_bytes", devices[0].key) is None


def test_a_killed_job_is_dead_and_leaves_its_last_word(directory: Path) -> None:
    with job(directory, TRAINING) as victim:
        victim.hear()
        reader = collector(directory)
        seen(reader, victim.pid, stepped(5))
        victim.process.send_signal(signal.SIGKILL)
        victim.process.wait()
        snapshot, process = seen(reader, victim.pid, lambda s, p: p.is_dead)
        assert process.phase == "ended"
        assert snapshot.value("steps", process.key) == 5
        assert snapshot.devices == ()
        assert len(snapshot.dead_devices) == 2
        assert process.profile is not None


def test_a_job_that_ends_leaves_a_last_sample_that_says_so(directory: Path) -> None:
    with job(directory, TRAINING) as ending:
        ending.hear()
        assert ending.end() == 0
        assert ending.stderr == ""
        (name,) = segments_in(directory)
        sample = SegmentReader(f"{directory}/{name}").newest()
        assert sample is not None
        assert sample.process["phase"] == 4
        assert sample.process["steps"] == 5
        assert sample.process["compilations"] >= 2


def test_stop_removes_the_segment_and_start_makes_a_new_one(directory: Path) -> None:
    code = """
    import jax; jax.devices()
    with tpusmi.start(0.05) as agent:
        say("started"); hear()
    say("stopped", agent.running); hear()
    tpusmi.start(0.05); tpusmi.start(0.05)
    say("again"); hear()
    try:
        with tpusmi.start(): raise KeyError
    except KeyError: say("kept"); hear()
    """
    with job(directory, code) as child:
        child.hear()
        until(lambda: segments_in(directory))
        child.tell("go")
        assert child.hear() == "stopped False"
        assert segments_in(directory) == []
        child.tell("go")
        child.hear()
        until(lambda: segments_in(directory))
        child.tell("go")
        assert child.hear() == "kept"
        assert len(segments_in(directory)) == 1


def test_a_forked_child_lets_go_of_the_segment_and_the_job_goes_on(directory: Path) -> None:
    code = TRAINING.replace(
        "    hear(); work()",
        """    hear()
    child = os.fork()
    if not child:
        tpusmi.step(); tpusmi.start(); tpusmi.stop()
        os._exit(7)
    say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    work()""",
    )
    with job(directory, code) as parent:
        parent.hear()
        before = segments_in(directory)
        parent.tell("fork")
        assert parent.hear() == "7"
        assert parent.hear() == "done"
        seen(collector(directory), parent.pid, stepped(6))
        assert segments_in(directory) == before


def test_a_worker_of_multiprocessing_does_not_appear_beside_its_job(
    directory: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import multiprocessing as m, sys, tpusmi\n"
        "tpusmi.start(0.05)\n"
        "def work(say): say.put('there')\n"
        "if __name__ == '__main__':\n"
        "    c = m.get_context('spawn'); say = c.Queue(); w = c.Process(target=work, args=(say,))\n"
        "    w.start(); print(say.get(), flush=True); w.join(); sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)],
        env=environment(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "there\n"
        until(lambda: segments_in(directory))
        assert [name.partition("-")[0] for name in segments_in(directory)] == [str(parent.pid)]
        parent.communicate("end\n", timeout=60)


def test_readers_that_come_go_and_are_killed_do_not_disturb_the_job(directory: Path) -> None:
    with job(directory, TRAINING) as watched:
        watched.hear()
        seen(collector(directory), watched.pid, stepped(5))
        (name,) = segments_in(directory)
        before = os.stat(directory / name).st_ino
        assert json.loads(tpusmi(directory, "--json").stdout)["processes"][0]["pid"] == watched.pid
        loop = subprocess.Popen(
            [*TPUSMI, "--json", "--loop-ms", "100"],
            env=environment(directory),
            stdout=subprocess.PIPE,
        )
        assert loop.stdout is not None
        loop.stdout.readline()
        loop.kill()
        loop.communicate()
        watched.tell("step")
        assert watched.hear() == "done"
        seen(collector(directory), watched.pid, stepped(6))
        assert os.stat(directory / name).st_ino == before
        assert watched.end() == 0


def test_before_a_backend_exists_the_job_is_starting_and_the_agent_makes_none(
    directory: Path,
) -> None:
    code = """
    import time
    tpusmi.start(interval_s=0.05)
    import jax
    from jax._src import xla_bridge
    time.sleep(1.5)
    say(xla_bridge._backends); hear()
    jax.devices(); say("made"); hear()
    """
    with job(directory, code) as late:
        reader = collector(directory)
        snapshot, process = seen(reader, late.pid, lambda s, p: p.phase == "starting")
        assert snapshot.devices_of(process.key) == ()
        assert late.hear() == "{}"
        late.tell("go")
        assert late.hear() == "made"
        snapshot, process = seen(reader, late.pid, lambda s, p: s.devices_of(p.key))
        assert len(snapshot.devices) == 2
        assert process.facts["process_count"] == 1


def test_a_job_of_two_processes_started_before_distributed_initialize_works(
    directory: Path,
) -> None:
    port = free_port()
    code = """
    tpusmi.start(interval_s=0.05)
    import jax
    jax.distributed.initialize("127.0.0.1:{port}", num_processes=2, process_id={rank})
    say(len(jax.devices()), len(jax.local_devices())); hear()
    """
    with (
        job(directory, code.format(port=port, rank=0)) as first,
        job(directory, code.format(port=port, rank=1)) as second,
    ):
        assert first.hear() == second.hear() == "4 2"
        reader = collector(directory)
        for rank, member in enumerate((first, second)):
            snapshot, process = seen(reader, member.pid, lambda s, p: s.devices_of(p.key))
            assert process.facts["process_index"] == rank
            assert process.facts["process_count"] == 2
            # Only its own devices, under their global ids.
            assert len(snapshot.devices_of(process.key)) == 2
        first.process.kill()
        second.process.kill()


FULL = """
for m in {mounts}; do mount -t tmpfs -o size=100k tmpfs $m; done; exec "$@"
"""


def in_small_file_systems(*mounts: Path | str) -> list[str]:
    """A command prefix that gives the job its own, nearly full, file systems."""
    script = FULL.format(mounts=" ".join(map(str, mounts)))
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]


@ROOT
def test_on_a_full_file_system_the_agent_switches_off_with_one_line_and_the_job_goes_on(
    directory: Path,
) -> None:
    with job(directory, TRAINING, *in_small_file_systems(directory)) as full:
        assert full.hear() == "ready"
        full.tell("step")
        assert full.hear() == "done"
        assert full.end() == 0
        (line,) = full.stderr.splitlines()
        assert line.startswith("tpusmi: agent switched off: ")
        assert "No space left on device" in line


@ROOT
def test_when_shared_memory_is_full_the_segment_goes_to_the_runtime_directory(
    directory: Path,
) -> None:
    runtime = directory / "run"
    runtime.mkdir()
    prefix = in_small_file_systems("/dev/shm")
    more = {"TPUSMI_DIR": None, "XDG_RUNTIME_DIR": str(runtime)}
    with job(directory, TRAINING, *prefix, **more) as full:
        assert full.hear() == "ready"
        place = runtime / f"tpusmi-{os.getuid()}"
        seen(collector(place), full.pid, stepped(5))
        assert full.end() == 0
        assert full.stderr == ""


def test_a_job_that_closes_all_its_descriptors_keeps_its_files_and_agent(
    directory: Path,
) -> None:
    code = TRAINING.replace(
        "    hear(); work()",
        """    hear()
    os.closerange(3, 256)
    files = [os.open(f"{directory}/{i}.ckpt", os.O_RDWR | os.O_CREAT) for i in range(40)]
    for fd in files: os.write(fd, b"A" * 5000)
    import time; time.sleep(2.0)
    say({open(f"{directory}/{i}.ckpt").read() == "A" * 5000 for i in range(40)})
    work()""",
    ).replace("{directory}", str(directory.parent))
    with job(directory, code) as daemon:
        daemon.hear()
        seen(collector(directory), daemon.pid, stepped(5))
        daemon.tell("close")
        assert daemon.hear() == "{True}"
        assert daemon.hear() == "done"
        seen(collector(directory), daemon.pid, stepped(6))
        assert daemon.end() == 0
        assert daemon.stderr == ""


def test_stop_in_a_signal_handler_never_waits_for_start(directory: Path) -> None:
    code = """
    import signal, threading
    from tpusmi.agent import sampler
    signal.signal(signal.SIGUSR1, lambda *_: tpusmi.stop())
    start = sampler.Sampler.start
    def interrupted(self): os.kill(os.getpid(), signal.SIGUSR1); start(self)
    sampler.Sampler.start = interrupted
    tpusmi.start(0.05); say("started"); tpusmi.stop(); say("stopped")
    """
    with job(directory, code) as handled:
        assert handled.hear() == "started"
        assert handled.hear() == "stopped"


def test_where_no_thread_can_be_made_the_job_goes_on_without_an_agent(directory: Path) -> None:
    code = """
    from tpusmi.agent.threads import Thread
    def refuse(self): raise RuntimeError("can't start new thread")
    Thread.start = refuse
    say(tpusmi.start().running); tpusmi.start(float("inf")); tpusmi.stop()
    """
    with job(directory, code) as poor:
        assert poor.hear() == "False"
        assert poor.end() == 0
        assert "agent not started: can't start new thread" in poor.stderr


def test_the_agent_has_ended_before_jax_takes_its_backends_down(directory: Path) -> None:
    code = """
    tpusmi.start(interval_s=0.05)
    import atexit, jax, tpusmi.agent
    atexit.register(lambda: say(tpusmi.agent._sampler))  # as JAX's own hook, after start()
    jax.devices(); say("made"); hear()
    """
    with job(directory, code) as ending:
        assert ending.hear() == "made"
        seen(collector(directory), ending.pid, lambda s, p: s.devices_of(p.key))
        ending.tell("go")
        assert ending.hear() == "None"


def test_a_segment_cut_to_nothing_under_the_writer_does_not_kill_the_job(directory: Path) -> None:
    with job(directory, TRAINING) as job_:
        job_.hear()
        reader = collector(directory)
        seen(reader, job_.pid, stepped(5))
        (name,) = segments_in(directory)
        os.truncate(directory / name, 0)
        until(lambda: os.stat(directory / name).st_size)  # the writer has written again
        job_.tell("step")
        assert job_.hear() == "done"
        assert job_.end() == 0


def test_an_agent_that_is_disabled_leaves_no_trace(directory: Path) -> None:
    with job(directory, TRAINING, TPUSMI_DISABLE="1") as quiet:
        assert quiet.hear() == "ready"
        assert segments_in(directory) == []
        assert quiet.end() == 0


def test_a_job_that_recompiles_at_every_step_is_warned_about(directory: Path) -> None:
    code = """
    from tpusmi.agent import activity, segment
    activity.WARM_UP_S = 0.0
    segment.FACTS_LEAST_S = 0.0
    """ + TRAINING.replace("\n", "\n    ").replace("jnp.ones((8, 8))", "jnp.ones((next(n),) * 2)")
    code = code.replace("tpusmi.start(", "import itertools; n = itertools.count(2); tpusmi.start(")
    code = code.replace("jax.jit(lambda x: (x @ x).sum())", "jax.jit(grow)").replace(
        "keep =", "def grow(x): return (x @ x).sum()\n    keep ="
    )
    with job(directory, code) as growing:
        growing.hear()
        snapshot, _ = seen(
            collector(directory), growing.pid, lambda s, p: "grow" in (p.facts["recompiled"] or "")
        )
        (notice,) = snapshot.warnings
        assert notice.code == "recompiling"
        assert "grow" in notice.message


def test_a_job_that_clears_its_backends_keeps_its_agent(directory: Path) -> None:
    code = TRAINING.replace(
        "    hear(); work()",
        "    hear(); jax.extend.backend.clear_backends(); hear(); keep = None; work()",
    ).replace("import jax,", "import jax, jax.extend.backend,")
    with job(directory, code) as clearing:
        clearing.hear()
        reader = collector(directory)
        seen(reader, clearing.pid, stepped(5))
        clearing.tell("clear")
        clearing.tell("again")
        assert clearing.hear() == "done"
        seen(reader, clearing.pid, stepped(6))
        assert clearing.stderr == ""


def test_where_no_memory_profile_can_be_taken_the_agent_says_so_and_goes_on(
    directory: Path,
) -> None:
    failing = """
    import jax.profiler
    def refuse(backend=None): raise RuntimeError("UNIMPLEMENTED: heap profile")
    jax.profiler.device_memory_profile = refuse
    """
    with job(directory, textwrap.dedent(failing) + TRAINING) as plain:
        plain.hear()
        snapshot, process = seen(
            collector(directory), plain.pid, lambda s, p: s.warnings and s.value("steps", p.key)
        )
        (notice,) = snapshot.warnings
        assert notice.code == "no_memory_profile"
        assert "UNIMPLEMENTED" in notice.message
        assert snapshot.value("live_array_bytes", process.key) is None
        plain.tell("step")
        assert plain.hear() == "done"
        seen(collector(directory), plain.pid, lambda s, p: s.value("steps", p.key) == 6)


WRITER = """
import sys, time
sys.path.append(sys.argv[2])
from support import segments
from tpusmi.wire import identity
writer = segments.segment(sys.argv[1], identity.me(), devices=8)
print(writer.path, flush=True)
from tpusmi.wire.layout import DEVICE_FIELDS, PROCESS_FIELDS, PROFILE_PPROF
n = 0
while True:
    n += 1
    value = float(n)
    devices = [dict.fromkeys(DEVICE_FIELDS, value)] * 8
    writer.append(segments.slot(value, dict.fromkeys(PROCESS_FIELDS, value), devices, value))
    writer.profile.write(PROFILE_PPROF, str(n).encode() * (n % 5000), value)
"""


def test_against_a_writer_at_full_speed_no_torn_sample_or_profile_is_accepted(
    directory: Path,
) -> None:
    path_of_tests = str(Path(__file__).parent.parent)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), path_of_tests],
        env=environment(directory),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout is not None
        reader = SegmentReader(writer.stdout.readline().strip())
        seen_sequences = set()
        began_s = time.monotonic()
        while time.monotonic() - began_s < (2.0 if len(seen_sequences) > 10 else LIMIT_S):
            sample, blob = reader.newest(), reader.profile()
            if sample is not None:
                values = {
                    *sample.process.values(),
                    *(v for d in sample.devices for v in d.values()),
                }
                assert values == {sample.at_s} == {float(sample.sequence)}
                seen_sequences.add(sample.sequence)
            if blob is not None:
                n = int(blob.at_s)
                assert blob.payload == str(n).encode() * (n % 5000)
        assert len(seen_sequences) > 10
    finally:
        writer.kill()
        writer.communicate()


def test_the_agent_starts_no_process(directory: Path) -> None:
    with job(directory, TRAINING) as job_:
        job_.hear()
        children = Path(f"/proc/{job_.pid}/task/{job_.pid}/children").read_text()
        assert children == ""


EIGHT_DEVICES = """
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp, numpy as np
def put(count, device):
    return jax.device_put(np.ones(count, np.float32), device)
def everywhere(count):
    return [put(count, device) for device in jax.devices()]
weights = everywhere(3000)
kept = [put(1000 * device.id, device) for device in jax.devices()[1:]]
say("ready")
hear()
"""


def test_what_the_lines_of_a_job_hold_on_each_device_is_what_lives_there(directory: Path) -> None:
    with job(directory, EIGHT_DEVICES) as trainer:
        trainer.hear()
        host = Host(segment_dir=str(directory), metrics_ports=())
        reader = open_collector(host, detailed=True)
        last = 4 * (3000 + 7000)
        snapshot, process = seen(
            reader,
            trainer.pid,
            lambda s, p: s.value("live_array_bytes", DeviceKey(p.key, 7)) == last,
        )
        profile = process.profile
        assert profile is not None
        devices = snapshot.devices_of(process.key)
        assert [d.id for d in devices] == list(range(8))
        for device in devices:
            own = [a for a in profile.allocations if (a.device, a.kind) == (device.id, "buffer")]
            live = snapshot.value("live_array_bytes", device.key)
            assert sum(a.bytes or 0 for a in own) == live == 4 * (3000 + 1000 * device.index)
            assert sum(a.count for a in own) == snapshot.value("live_arrays", device.key)
        lines = {(a.function, a.device): a.bytes for a in profile.allocations if a.bytes}
        assert lines["put", 7] == last
        assert (profile.allocations_left_out_bytes, profile.allocations_left_out_count) == (0, 0)
        plain, _ = seen(collector(directory), trainer.pid, lambda s, p: p.profile)
        assert [p.profile.allocations for p in plain.processes if p.profile] == [()]
