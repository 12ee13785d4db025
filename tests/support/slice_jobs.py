"""Real JAX jobs of several processes that look like hosts: each with a name and a directory of its
own, and all joined by jax.distributed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from support.clocks import Pauses
from support.free_ports import free_port
from support.jobs import Job, collector, job
from support.waits import until
from tpusmi.collect import Collector
from tpusmi.model.slice_hosts import Slice, SliceProcess

DEADLINE_S = 5.0
"""Less than an agent's, for tests of a coordinator that hangs."""
HELD_UP_S = 3.0
"""What takes less than this has not waited for the coordinator, also while this machine is busy;
pauses of the machine do not count.
"""
STEP_S = 0.05
PERIOD_S = 2.0
"""Less than an agent's as well: a test waits for several."""

CODE = """
    import select, socket, time
    index, count, address, deadline_s = {index}, {count}, "{address}", {deadline_s}
    socket.gethostname = lambda: f"host-{{index}}"
    from tpusmi.agent import own_slice
    own_slice.DEADLINE_S = deadline_s
    own_slice.period_s = lambda count: {period_s}
    tpusmi.start(interval_s=0.5, slice={is_on})
    import jax
    jax.distributed.initialize(address, count, index)
    train = jax.jit(lambda x: x @ x)
    x = jax.device_put(jax.numpy.eye(64), jax.local_devices()[0])
    train(x).block_until_ready()
    say("ready", jax.process_count())
    slowest, last = 0.0, time.monotonic()
    while True:
        x = train(x).block_until_ready()
        tpusmi.step()
        has_line = select.select([sys.stdin], [], [], {step_s})[0]
        now = time.monotonic()
        slowest, last = max(slowest, now - last), now
        if not has_line:
            continue
        line = sys.stdin.readline().strip()
        if line == "slowest":
            say(slowest)
            slowest = 0.0
        elif line == "stop":
            tpusmi.stop()
            say("stopped")
        elif line == "fork":
            child = os.fork()
            if not child:
                os._exit(7)
            say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        elif line.startswith("join "):
            import jax.extend.backend
            jax.distributed.shutdown()
            jax.clear_caches()
            jax.extend.backend.clear_backends()
            jax.distributed.initialize(line.split()[1], count, index)
            train = jax.jit(lambda x: x @ x)
            x = jax.device_put(jax.numpy.eye(64), jax.local_devices()[0])
            say("joined", jax.process_count())
        elif line == "leave":
            break
        else:
            os._exit(0)  # JAX's own end waits for all processes
"""


class Member(NamedTuple):
    """One process of the job."""

    job: Job
    viewer: Collector
    directory: Path
    """Where its segment is, alone."""
    pauses: Pauses
    """Of the machine, which hold up all that runs on it."""

    def slice(self) -> Slice | None:
        """What its viewer shows now."""
        return self.viewer.read_once().slice

    def hosts(self) -> dict[str, SliceProcess]:
        """The same, by host name; empty without a slice. Fails when this job's agent has given the
        slice up: what is missing then has not left the job.
        """
        s = self.viewer.read_once()
        off = [w.message for w in s.warnings if w.code == "slice_off"]
        assert not off, off
        return {} if s.slice is None else {h.name: h for h in s.slice.hosts}

    def slowest_step_s(self) -> float:
        """The longest step since this was last asked, without the longest pause of the machine."""
        self.job.tell("slowest")
        return float(self.job.hear()) - self.pauses.longest_s()


@contextmanager
def slice_job(
    directory: Path, count: int, *, is_on: bool = True, **more: str
) -> Iterator[list[Member]]:
    """A job of that many processes, all of them taking steps. `more` is for the environment."""
    address = f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        pauses = stack.enter_context(Pauses())
        members = []
        for index in range(count):
            code = CODE.format(
                index=index,
                count=count,
                address=address,
                deadline_s=DEADLINE_S,
                period_s=PERIOD_S,
                step_s=STEP_S,
                is_on=is_on,
            )
            place = directory / f"host-{index}"
            place.mkdir()
            started = stack.enter_context(job(place, code, **more))
            members.append(Member(started, collector(place), place, pauses))
        for member in members:
            assert member.job.hear() == f"ready {count}"
        yield members


def all_live(members: list[Member]) -> list[Slice]:
    """The slice from each viewer, once each of them shows every member live and with steps."""

    def look() -> list[Slice] | None:
        shown = [s for s in (m.slice() for m in members) if s is not None]
        is_whole = len(shown) == len(members) and all(
            [h.process_index for h in s.hosts] == [*range(len(members))]
            and all(h.state == "live" and h.phase == "running" and h.step_time_s for h in s.hosts)
            for s in shown
        )
        return shown if is_whole else None

    return until(look, what="the whole slice in each viewer")
