"""Jobs that never import JAX, or do so late: what they do is judged by their steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.hosts import NODE, SECOND, Running, add_chips, host, running
from support.jobs import collector, seen
from support.jobs import job as jax_job

from tpusmi.collect import Collector, open_collector
from tpusmi.model import Process, Snapshot
from tpusmi.report.plain_table import table

WORKER = "tpusmi.start(interval_s=0.05); steps()"
STEPS = """
import sys, threading, time, tpusmi
from tpusmi.agent import activity
activity.IDLE_AFTER_S, activity.IDLE_AFTER_STEPS = 1.0, 1
def steps():
    while go: tpusmi.step(flops=1e9); time.sleep(0.01)
go = [1]
"""
JOB = f"""{STEPS}
files = hold(*sys.argv[1:])
tpusmi.start(interval_s=0.05)
say('started')
for line in sys.stdin:
    exec(line)
    say('jax' in sys.modules)
"""
STEP, PAUSE = "threading.Thread(target=steps, daemon=True).start()", "go.clear()"


@contextmanager
def job(tmp_path: Path, *nodes: str) -> Iterator[tuple[Running, Collector]]:
    """A job without JAX that holds those nodes of a host, and what looks at it."""
    at = host(tmp_path / "host", *nodes)
    add_chips(tmp_path / "host", len(nodes))
    paths = [str(tmp_path / "host" / node[1:]) for node in nodes]
    with running(JOB, *paths, env={"TPUSMI_DIR": at.segment_dir or ""}) as child:
        assert child.line() == "started"
        yield child, open_collector(at)


def tell(child: Running, line: str) -> None:
    """Have the job do it: it still has no JAX."""
    assert child.process.stdin is not None
    child.process.stdin.write(line)
    assert child.go_on() == "False"


def test_a_job_that_steps_without_jax_runs_and_has_the_devices_that_it_holds(
    tmp_path: Path,
) -> None:
    with job(tmp_path, NODE, SECOND) as (child, looking):
        s, p = seen(looking, child.pid, lambda s, p: p.phase == "starting")
        assert [d.node for d in s.devices_of(p.key)] == [NODE, SECOND]
        tell(child, STEP)

        def steps(s: Snapshot, p: Process) -> bool:
            return p.phase == "running" and s.value("flops_per_s", p.key) is not None

        s, p = seen(looking, child.pid, steps)
        assert [d.node for d in s.devices_of(p.key)] == [NODE, SECOND]
        assert s.value("steps_per_s", p.key)
        assert s.value("compilations", p.key) is None
        row = next(r for r in table(s).splitlines() if r.split()[:1] == [str(p.pid)])
        assert "0-1" in row.split()
        assert " running " in row


def test_a_job_without_jax_that_no_longer_steps_is_idle_and_runs_when_it_goes_on(
    tmp_path: Path,
) -> None:
    with job(tmp_path) as (child, looking):
        tell(child, STEP)
        seen(looking, child.pid, lambda s, p: p.phase == "running")
        tell(child, PAUSE)
        s, p = seen(looking, child.pid, lambda s, p: p.phase == "idle")
        assert (s.value("since_last_step_s", p.key) or 0) >= 1.0
        tell(child, f"go.append(1); {STEP}")
        seen(looking, child.pid, lambda s, p: p.phase == "running")


def test_a_job_that_says_nothing_yet_is_starting(tmp_path: Path) -> None:
    with job(tmp_path) as (child, looking):
        s, p = seen(looking, child.pid, lambda s, p: p.phase is not None)
        assert p.phase == "starting"
        assert s.value("steps", p.key) is None


def test_a_warning_of_a_job_without_jax_is_shown(tmp_path: Path) -> None:
    with job(tmp_path) as (child, looking):
        tell(child, "from tpusmi.agent import segment; segment.FACTS_LEAST_S = 0")
        tell(child, "tpusmi.step(flops='many')")
        seen(looking, child.pid, lambda s, p: any(w.code == "flops_ignored" for w in p.warnings))


def test_a_worker_process_that_steps_without_jax_is_shown(tmp_path: Path) -> None:
    code = f"""
import multiprocessing
worker = multiprocessing.get_context('spawn').Process(target=exec, args=({STEPS + WORKER!r}, {{}}))
worker.start()
say(worker.pid)
wait()
"""
    directory = tmp_path / "segments"
    with running(code, env={"TPUSMI_DIR": str(directory)}) as child:
        pid = int(child.line())
        seen(collector(directory), pid, lambda s, p: p.phase == "running")


def test_a_trainer_that_imports_jax_late_keeps_its_steps_and_gets_its_devices(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "segments"
    code = """
        tpusmi.start(interval_s=0.05)
        for _ in range(50): tpusmi.step()
        hear()
        import jax
        jax.devices()
        tpusmi.step()
        hear()
    """
    with jax_job(directory, code) as late:
        looking = collector(directory)
        s, p = seen(looking, late.pid, lambda s, p: p.phase == "running")
        assert (s.value("steps", p.key), len(s.devices_of(p.key))) == (50, 0)
        late.tell("go on")
        s, p = seen(looking, late.pid, lambda s, p: s.value("steps", p.key) == 51)
        s, p = seen(looking, late.pid, lambda s, p: len(s.devices_of(p.key)) == 2)
        assert p.phase in ("running", "compiling")
        assert s.value("compilations", p.key) == 0
