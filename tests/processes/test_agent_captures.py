"""Captures of real JAX jobs through their agents: no port, and no harm to the job."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.clocks import Stopwatch
from support.commands import USER, environment
from support.jobs import Job, job
from support.namespaces import inside
from support.run_as import another_user
from support.users import reachable
from support.waits import until

from tpusmi.model import Host
from tpusmi.profiler import in_process
from tpusmi.profiler.cost import CostMeter
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.wire import capture_files

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX here")
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
SHORT = CaptureRequest(duration_ms=200)

TRAINING = """
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp
train_step = jax.jit(lambda x: (x @ x).sum())
def work():
    train_step(jnp.ones((64, 64))).block_until_ready()
    tpusmi.step()
def traced(folder):
    jax.profiler.start_trace(folder)
    work()
    jax.profiler.stop_trace()
work()
"""
LOOP = """
import threading, time
say("ready")
def listen():
    for line in iter(sys.stdin.readline, ""):
        commands.append(line.strip())
    commands.append("end")
commands = []
threading.Thread(target=listen, daemon=True).start()
while "end" not in commands:
    work()
    time.sleep(0.002)
    if commands:
        command = commands.pop(0)
        if command == "end":
            break
        exec(command)
        say("done")
"""


def own_lines(job: Job) -> list[str]:
    """What the job has said on stderr, without what a JAX before 0.9 says at each of its traces."""
    return [line for line in job.stderr.splitlines() if "tensorflow.python.profiler" not in line]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("captures") / "segments"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def module_job(shared: Path) -> Iterator[Job]:
    with job(shared, TRAINING + LOOP) as running:
        is_ready(running, shared)
        yield running
        assert running.end() == 0
        assert own_lines(running) == []


@pytest.fixture
def trainer(module_job: Job, shared: Path) -> Iterator[Job]:
    """A job that works all the time; after the test it still does, and only its segment is left."""
    yield module_job
    module_job.tell("pass")
    assert module_job.hear() == "done"
    until(lambda: only_segment(shared), 30)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


def is_ready(running: Job, directory: Path) -> None:
    """It works, and its agent has a segment: start() does not wait for that."""
    assert running.hear() == "ready"
    until(lambda: list(directory.glob("*.seg")))


def only_segment(directory: Path) -> bool:
    return all(name.endswith(".seg") for name in os.listdir(directory))


def segment(directory: Path) -> str:
    return str(next(path for path in directory.iterdir() if path.name.endswith(".seg")))


def captured(
    directory: Path,
    pid: int,
    request: CaptureRequest = SHORT,
    progress: Callable[[str], None] = lambda _: None,
) -> CapturedTrace:
    folder = directory.parent / f"traces-{time.monotonic_ns()}"
    folder.mkdir()
    host = Host(segment_dir=str(directory))
    try:
        return in_process.capture(host, pid, request, str(folder), progress)
    except CaptureError:
        assert list(folder.iterdir()) == []
        raise


def refusal(
    directory: Path,
    pid: int,
    request: CaptureRequest = SHORT,
    progress: Callable[[str], None] = lambda _: None,
) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        captured(directory, pid, request, progress)
    return caught.value


def stop(trainer: Job) -> None:
    os.kill(trainer.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, trainer.pid, os.WSTOPPED | os.WNOWAIT)


def when(sentence: str, act: Callable[[], object]) -> Callable[[str], None]:
    """A progress that acts at that sentence."""
    return lambda said: act() if said == sentence else None


def test_a_job_is_captured_without_a_port(trainer: Job, shared: Path) -> None:
    sentences: list[str] = []
    trace = captured(shared, trainer.pid, progress=sentences.append)
    data = Path(trace.path).read_bytes()
    assert b"/host:CPU" in data
    assert b"jit_" in data
    assert trace.capture.how == "agent"
    assert trace.capture.pid == trainer.pid
    assert trace.capture.trace_bytes == len(data)
    assert trace.capture.took_s is not None
    assert 0.2 <= trace.capture.took_s < 60
    assert sentences[0] == f"asking the agent of process {trainer.pid}"
    assert "capturing" in sentences
    assert Path(trace.path).stat().st_mode & 0o777 == 0o600


def test_the_cost_is_measured_from_the_steps_of_the_job(trainer: Job, shared: Path) -> None:
    def measured() -> list[float]:
        """The rates, once all are known: its agent may have begun just now, or sample late."""
        meter = CostMeter(Host(segment_dir=str(shared)), trainer.pid)
        meter.before()
        captured(shared, trainer.pid)
        meter.during()
        began_s = time.monotonic()
        cost = meter.after(2.0)
        assert 1.9 < time.monotonic() - began_s < 60
        rates = [cost.steps_per_s_before, cost.steps_per_s_during, cost.steps_per_s_after]
        return [rate for rate in rates if rate is not None] if None not in rates else []

    before, *_ = until(measured)
    assert before > 1


def test_a_jax_that_keeps_its_session_elsewhere_is_captured_by_stop_trace(
    trainer: Job, shared: Path
) -> None:
    trainer.tell("from tpusmi.agent import jax_trace as j; kept, j._STATE = j._STATE, ('gone',)")
    assert trainer.hear() == "done"
    trace = captured(shared, trainer.pid)
    assert b"/host:CPU" in Path(trace.path).read_bytes()
    trainer.tell("j._STATE = kept")
    assert trainer.hear() == "done"


def test_of_two_captures_at_once_one_is_told_that_the_job_is_busy(
    trainer: Job, shared: Path
) -> None:
    answers: list[CaptureError] = []

    def other() -> None:
        answers.append(refusal(shared, trainer.pid))

    second = threading.Thread(target=other)
    long = CaptureRequest(duration_ms=2500)
    trace = captured(shared, trainer.pid, long, when("capturing", second.start))
    second.join(30)
    assert os.path.getsize(trace.path) > 0
    (answer,) = answers
    assert answer.trouble is Trouble.BUSY
    assert "captured already" in str(answer)


def test_a_job_that_traces_itself_is_busy_and_keeps_its_trace(
    trainer: Job, shared: Path, tmp_path: Path
) -> None:
    trainer.tell(f"jax.profiler.start_trace({str(tmp_path / 'own')!r})")
    assert trainer.hear() == "done"
    assert refusal(shared, trainer.pid).trouble is Trouble.BUSY
    trainer.tell("jax.profiler.stop_trace()")
    assert trainer.hear() == "done"
    assert list(tmp_path.glob("own/**/*.xplane.pb"))
    captured(shared, trainer.pid)


def test_after_a_session_of_its_profiler_server_the_job_can_trace_again(
    trainer: Job, shared: Path, tmp_path: Path
) -> None:
    """JAX takes a second session without an error, and fails only when it is to be written."""
    trainer.tell("from jax._src.lib import _profiler; session = _profiler.ProfilerSession()")
    assert trainer.hear() == "done"
    answer = refusal(shared, trainer.pid)
    assert answer.trouble is Trouble.BUSY
    trainer.tell("session.stop(); del session")
    assert trainer.hear() == "done"
    trainer.tell(f"traced({str(tmp_path / 'own')!r})")
    assert trainer.hear() == "done"
    assert list(tmp_path.glob("own/**/*.xplane.pb"))


def test_a_start_trace_of_the_job_fails_meanwhile_and_our_capture_goes_on(
    trainer: Job, shared: Path
) -> None:
    code = (
        "try: jax.profiler.start_trace('/nonexistent')\n"
        "except RuntimeError: pass\n"
        "else: sys.exit('two traces at once')"
    )
    trace = captured(
        shared,
        trainer.pid,
        CaptureRequest(duration_ms=2000),
        when("capturing", lambda: trainer.tell(f"exec({code!r})")),
    )
    assert trainer.hear() == "done"
    assert os.path.getsize(trace.path) > 0


def test_a_stop_trace_of_the_job_ends_our_capture_early(trainer: Job, shared: Path) -> None:
    stop = when("capturing", lambda: trainer.tell("jax.profiler.stop_trace()"))
    trace = captured(shared, trainer.pid, CaptureRequest(duration_ms=2500), stop)
    assert trainer.hear() == "done"
    assert b"/host:CPU" in Path(trace.path).read_bytes()


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "garbage", "another process"])
def test_a_planted_request_disturbs_nobody(
    trainer: Job, shared: Path, tmp_path: Path, kind: str
) -> None:
    path = Path(segment(shared)).with_suffix(capture_files.ASK)
    secret = tmp_path / "secret"
    secret.write_text("{}")
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"\xff" * 10_000 if kind == "garbage" else b'{"version": 1, "pid": 1}')
    if kind == "directory":
        trainer.tell("time.sleep(0.3)")
        assert trainer.hear() == "done"
        assert refusal(shared, trainer.pid).trouble is Trouble.BUSY
        path.rmdir()
    until(lambda: not os.path.lexists(path), 30)
    assert secret.read_text() == "{}"
    captured(shared, trainer.pid)


@ROOT
def test_a_request_that_another_user_wrote_is_not_served(trainer: Job, shared: Path) -> None:
    path = Path(segment(shared)).with_suffix(capture_files.ASK)
    path.write_text("{}")
    os.chown(path, USER, USER)
    trainer.tell("time.sleep(0.3)")
    assert trainer.hear() == "done"
    assert path.exists()
    assert refusal(shared, trainer.pid).trouble is Trouble.BUSY
    path.unlink()
    captured(shared, trainer.pid)


def test_a_request_that_nothing_took_for_minutes_is_replaced(
    trainer: Job, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(segment(shared)).with_suffix(capture_files.ASK)

    def leave_an_old_request() -> None:
        stop(trainer)
        path.write_text("{}")
        os.utime(path, (1, 1))

    monkeypatch.setattr(in_process, "SILENT_S", 0.3)
    asking = f"asking the agent of process {trainer.pid}"
    try:
        answer = refusal(shared, trainer.pid, progress=when(asking, leave_an_old_request))
    finally:
        os.kill(trainer.pid, signal.SIGCONT)
    assert answer.trouble is Trouble.FAILED
    assert "is silent" in str(answer)
    assert not path.exists()


def test_a_stopped_job_is_not_asked(trainer: Job, shared: Path) -> None:
    stop(trainer)
    try:
        answer = refusal(shared, trainer.pid)
    finally:
        os.kill(trainer.pid, signal.SIGCONT)
    pid = trainer.pid
    assert (answer.trouble, str(answer)) == (
        Trouble.FAILED,
        f"process {pid} is stopped: resume it with `kill -CONT {pid}`",
    )
    assert only_segment(shared)


def test_ctrl_c_removes_the_request_and_ends_the_capture(trainer: Job, shared: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    long = CaptureRequest(duration_ms=10_000)
    with Stopwatch() as whole:
        with pytest.raises(KeyboardInterrupt):
            captured(shared, trainer.pid, long, when("capturing", interrupt))
        until(lambda: only_segment(shared), 30)
    assert whole.seconds() < 9


def test_a_trace_over_the_limit_is_refused_and_removed(trainer: Job, shared: Path) -> None:
    answer = refusal(shared, trainer.pid, SHORT._replace(bytes_most=1000))
    assert answer.trouble is Trouble.FAILED
    assert "too large" in str(answer)


def test_a_capture_for_too_long_is_refused_before_anything_is_written(
    trainer: Job, shared: Path
) -> None:
    answer = refusal(shared, trainer.pid, CaptureRequest(duration_ms=20_000))
    assert "at most 10 s" in str(answer)


def test_a_process_that_is_not_there_or_has_no_agent_is_said_so(trainer: Job, shared: Path) -> None:
    assert "there is no process" in str(refusal(shared, 2**22 + 1))
    answer = refusal(shared, os.getpid())
    assert answer.trouble is Trouble.ABSENT
    assert "call tpusmi.start()" in str(answer)


AS_USER = """
import sys
from tpusmi.model import Host
from tpusmi.profiler.in_process import capture
from tpusmi.profiler.requests import CaptureRequest
from tpusmi.trace.troubles import CaptureError
try:
    capture(Host(segment_dir=sys.argv[1]), int(sys.argv[2]), CaptureRequest(200), "/tmp", print)
except CaptureError as error:
    print(error.trouble.value, error)
"""


@ROOT
def test_another_user_may_not_capture(trainer: Job, shared: Path) -> None:
    words = another_user(USER, sys.executable, "-c", AS_USER, str(shared), str(trainer.pid))
    with reachable(shared):
        answer = subprocess.run(
            words, env=environment(shared), capture_output=True, text=True, timeout=30
        )
    assert answer.stdout.startswith("denied "), answer
    assert answer.stdout.endswith(" belongs to root: only root can capture it\n")


@ROOT
def test_root_captures_the_job_of_a_user(tmp_path: Path) -> None:
    directory = tmp_path / "segments"
    directory.mkdir()
    os.chown(directory, USER, USER)
    with (
        reachable(directory),
        job(directory, TRAINING + LOOP, *another_user(USER), HOME="/", TMPDIR=None) as users,
    ):
        is_ready(users, directory)
        trace = captured(directory, users.pid)
        assert b"/host:CPU" in Path(trace.path).read_bytes()
        assert os.stat(trace.path).st_uid == 0
        until(lambda: only_segment(directory), 30)
        assert users.end() == 0
        assert own_lines(users) == []


def test_a_job_that_forbids_captures_is_not_captured(directory: Path) -> None:
    with job(directory, TRAINING + LOOP, TPUSMI_PROFILE="off") as quiet:
        is_ready(quiet, directory)
        answer = refusal(directory, quiet.pid)
        assert answer.trouble is Trouble.DENIED
        assert "TPUSMI_PROFILE=0" in str(answer)
        assert quiet.end() == 0


def test_a_job_that_forbids_captures_later_answers_that(trainer: Job, shared: Path) -> None:
    trainer.tell("os.environ['TPUSMI_PROFILE'] = '0'")
    assert trainer.hear() == "done"
    assert refusal(shared, trainer.pid).trouble is Trouble.DENIED
    trainer.tell("del os.environ['TPUSMI_PROFILE']")
    assert trainer.hear() == "done"


def test_a_job_without_a_backend_has_nothing_to_capture(directory: Path) -> None:
    code = """
    tpusmi.start(interval_s=0.1)
    tpusmi.step()
    say("ready"); hear()
    """
    with job(directory, code) as idle:
        is_ready(idle, directory)
        answer = refusal(directory, idle.pid)
        assert answer.trouble is Trouble.ABSENT
        assert "does not use JAX" in str(answer)
        assert idle.end() == 0


def test_a_job_may_capture_itself_as_soon_as_it_has_started_its_agent(directory: Path) -> None:
    code = """
    import time
    from tpusmi.agent.segment import Segment
    open_now = Segment.open
    Segment.open = lambda *values: (time.sleep(1.0), open_now(*values))
    tpusmi.start()
    tpusmi.step()
    try:
        tpusmi.profile(os.getpid(), duration_ms=50, cost_s=0)
    except tpusmi.CaptureError as error:
        say(str(error).replace(str(os.getpid()), "PID"))
    """
    with job(directory, code) as own:
        assert own.hear().startswith("process PID does not use JAX now")
        assert own.end() == 0


def test_a_job_that_is_killed_in_the_middle_leaves_nothing(directory: Path) -> None:
    with job(directory, TRAINING + LOOP) as doomed:
        is_ready(doomed, directory)

        with pytest.raises(CaptureError, match="ended during the capture"):
            captured(
                directory,
                doomed.pid,
                CaptureRequest(duration_ms=5000),
                when("capturing", doomed.process.kill),
            )
        assert only_segment(directory)


def test_a_job_that_ends_in_the_middle_ends_as_it_would_without_us(directory: Path) -> None:
    """Python aborts a process whose thread comes back from C++ after the end: rc 134."""
    with job(directory, TRAINING + LOOP) as short:
        is_ready(short, directory)
        with pytest.raises(CaptureError, match="ended during the capture"):
            captured(
                directory,
                short.pid,
                CaptureRequest(duration_ms=8000),
                when("capturing", lambda: short.tell("end")),
            )
        assert short.process.wait(30) == 0
        assert own_lines(short) == []
        until(lambda: only_segment(directory), 30)


def test_stop_in_the_middle_ends_the_capture_and_the_job_goes_on(directory: Path) -> None:
    with job(directory, TRAINING + LOOP) as stopping:
        is_ready(stopping, directory)
        with pytest.raises(CaptureError, match="ended during the capture"):
            captured(
                directory,
                stopping.pid,
                CaptureRequest(duration_ms=8000),
                when("capturing", lambda: stopping.tell("tpusmi.stop()")),
            )
        assert stopping.hear() == "done"
        assert os.listdir(directory) == []
        stopping.tell(f"traced({str(directory.parent / 'own')!r})")
        assert stopping.hear() == "done"
        assert stopping.end() == 0


def test_a_fork_in_the_middle_harms_neither_the_child_nor_the_capture(
    trainer: Job, shared: Path
) -> None:
    code = """
import warnings; warnings.simplefilter('ignore')  # JAX warns about every fork
child = os.fork()
if not child: time.sleep(0.2); os._exit(7)
"""
    fork = when("capturing", lambda: trainer.tell(f"exec({code!r})"))
    trace = captured(shared, trainer.pid, CaptureRequest(duration_ms=600), fork)
    assert os.path.getsize(trace.path) > 0
    assert trainer.hear() == "done"
    trainer.tell("assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7")
    assert trainer.hear() == "done"


FULL = """
mkdir -p {small} && mount -t tmpfs -o size=64k tmpfs {small} && exec "$@"
"""


@ROOT
def test_where_the_trace_does_not_fit_jax_is_left_ready_for_the_job(directory: Path) -> None:
    small, own = directory.parent / "small", directory.parent / "own"
    code = f"""
    from tpusmi.agent import jax_trace
    from tpusmi.wire.capture_messages import AgentRequest
    def crowd(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until: work()
        return False
    import time
    request = AgentRequest("", 1, 1, 1, 500, 10**9, 0.0)
    try:
        jax_trace.record(request, {str(small)!r}, crowd, lambda: None)
    except jax_trace.TraceError as error:
        say(error.reason, error)
    traced({str(own)!r})
    say("traced"); hear()
    """
    prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c"]
    words = [*prefix, FULL.format(small=small), "sh"]
    with job(directory, TRAINING + textwrap.dedent(code), *words) as full:
        assert full.hear().startswith("no_room ")
        assert full.hear() == "traced"
        assert full.end() == 0
    assert list(own.glob("**/*.xplane.pb"))


CONTAINERS = {
    "of root": "own('/dev/shm', '/tmp', '/run'); own_pids()",
    "of a user in a user namespace": (
        f"become({USER}); own_users(0); mount('tmpfs', '/dev/shm', 'tmpfs'); here()"
    ),
}
IN_CONTAINER = """
os.environ.update(JAX_PLATFORMS="cpu", TMPDIR="/dev/shm")
import tpusmi
import jax, jax.numpy as jnp
jax.jit(lambda x: x @ x)(jnp.ones((64, 64))).block_until_ready()
start()
"""


@ROOT
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_job_in_a_container_is_captured_from_its_host(tmp_path: Path, container: str) -> None:
    """Its /dev/shm, with the trace in it, is not ours, nor are its pids or its users."""
    with inside(f"{CONTAINERS[container]}\n{IN_CONTAINER}") as contained:
        host = Host()
        trace = in_process.capture(host, contained.pid, SHORT, str(tmp_path), lambda _: None)
        assert b"/host:CPU" in Path(trace.path).read_bytes()
        place = Path(f"/proc/{contained.pid}/root/dev/shm/tpusmi-0")
        until(lambda: only_segment(place), 30)
