"""What `tpusmi profile` takes a word for, which job it takes without one, and what it saves."""

from __future__ import annotations

import _thread
import json
import os
import re
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.clocks import without_collector
from support.snapshots import merge

from tpusmi.model import AGENT, OK, Host, HostFacts, Outcome, Process, ProcessKey, Snapshot
from tpusmi.profiler import in_process, pid_capture
from tpusmi.profiler import private_folder as folders
from tpusmi.profiler.agent_job import AgentJob
from tpusmi.profiler.agent_words import NOT_JAX
from tpusmi.profiler.at_once import _Running, at_once
from tpusmi.profiler.capture_target import TargetKind, distinct, target_of
from tpusmi.profiler.in_process import capture
from tpusmi.profiler.pid_capture import fallback_port, with_ways
from tpusmi.profiler.private_folder import PREFIX, private_folder
from tpusmi.profiler.requests import CaptureRequest
from tpusmi.profiler.same_process import SameProcesses
from tpusmi.profiler.trace_files import contents_of, read_saved
from tpusmi.profiler.which_job import SeveralJobsError, jobs_of
from tpusmi.trace import plain_objects
from tpusmi.trace.figures import FILE, Capture, TimeShares, TraceProfile
from tpusmi.trace.plain_objects import to_object
from tpusmi.trace.troubles import CaptureError, TooLongError, Trouble

EMPTY = TraceProfile(
    **{
        **dict.fromkeys(TraceProfile._fields),
        "capture": Capture(how=FILE, target="x"),
        "shares": TimeShares(),
        "sources": {},
        **dict.fromkeys(("cores", "operations", "programs", "memory", "notes"), ()),
    }
)


def test_the_same_job_or_file_named_twice_is_one_target(tmp_path: Path) -> None:
    trace = tmp_path / "x.pb"
    alias = tmp_path / "alias.pb"
    alias.symlink_to(trace)
    given = ("12", "012", ":9012", "localhost:9012", "127.0.0.1", "h:9012", "H:9012", "h:9013")
    words = (*given, str(trace), str(alias))
    kept = [target.text for target in distinct([target_of(word) for word in words])]
    assert kept == ["12", ":9012", "h:9012", "h:9013", str(trace)]


def test_a_path_is_a_target_in_a_directory_that_has_been_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    given = [target_of("some.pb"), target_of("other.pb")]
    assert distinct(given) == given


def test_only_an_agent_refuses_long_captures(tmp_path: Path) -> None:
    """A job without one is captured through its profiler service: the trouble must say so."""
    request = CaptureRequest(duration_ms=20_000)
    with pytest.raises(CaptureError) as refused:
        capture(Host(root=str(tmp_path)), 71, request, str(tmp_path), print)
    assert refused.value.trouble is Trouble.ABSENT


def test_a_capture_too_long_for_an_agent_goes_through_the_service_of_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise TooLongError(Trouble.FAILED, "an agent captures at most 10 s")

    host, request = Host(root=str(tmp_path)), CaptureRequest(duration_ms=20_000)
    a_look = merge([], HostFacts("vm", "", "", False, ""), 1.0, "0", judge=lambda s: s)
    rest = (host, 71, request, str(tmp_path), (lambda: a_look, print))
    monkeypatch.setattr(in_process, "capture", refuse)
    monkeypatch.setattr(pid_capture, "_through", lambda port, *_: port)
    monkeypatch.setattr(pid_capture, "fallback_port", lambda *_: 9761)
    assert pid_capture.capture_process(*rest) == 9761  # type: ignore[comparison-overlap]
    monkeypatch.setattr(pid_capture, "fallback_port", lambda *_: None)
    with pytest.raises(CaptureError, match="at most 10 s"):
        pid_capture.capture_process(*rest)


def test_a_job_under_a_debugger_is_asked_and_one_that_a_signal_stopped_is_not(
    tmp_path: Path,
) -> None:
    job = cast(AgentJob, SimpleNamespace(host=Host(root=str(tmp_path)), pid=71))
    stat = tmp_path / "proc" / "71" / "stat"
    stat.parent.mkdir(parents=True)
    stat.write_text(f"71 (job) t {'1 ' * 50}")
    in_process._check_runs(job)
    stat.write_text(f"71 (job) T {'1 ' * 50}")
    with pytest.raises(CaptureError, match="kill -CONT 71"):
        in_process._check_runs(job)


def test_another_process_that_has_the_pid_later_is_not_captured(tmp_path: Path) -> None:
    same, given = SameProcesses(Host(root=str(tmp_path))), [target_of("71"), target_of(":9012")]
    stat = tmp_path / "proc" / "71" / "stat"
    stat.parent.mkdir(parents=True)
    running, later = (f"71 (python) R {'0 ' * 18}{ticks} 0" for ticks in (500, 900))
    for text in (running, running, ""):
        stat.write_text(text)
        assert same.split(given) == (given, {})
    stat.write_text(later)
    left, errors = same.split(given)
    assert left == given[1:]
    assert str(errors["71"]) == "process 71 has ended, and another one has its pid now"


@pytest.mark.parametrize(
    ("word", "kind", "meaning"),
    [
        ("4321", TargetKind.PID, 4321),
        (":9012", TargetKind.ADDRESS, "localhost:9012"),
        ("localhost", TargetKind.ADDRESS, "localhost:9012"),
        ("host-0.pool:8466", TargetKind.ADDRESS, "host-0.pool:8466"),
        ("10.0.0.2:1", TargetKind.ADDRESS, "10.0.0.2:1"),
        ("[::1]:9012", TargetKind.ADDRESS, "[::1]:9012"),
        ("[fe80::1%eth0]", TargetKind.ADDRESS, "[fe80::1%eth0]:9012"),
        ("grpc://10.0.0.2:8466", TargetKind.ADDRESS, "10.0.0.2:8466"),
        ("./4321", TargetKind.PATH, ""),
        ("absent.xplane.pb", TargetKind.PATH, ""),
        ("before.json", TargetKind.PATH, ""),
        ("~/log", TargetKind.PATH, ""),
        (".", TargetKind.PATH, ""),
    ],
)
def test_a_word_is_a_pid_an_address_or_a_path(word: str, kind: TargetKind, meaning: object) -> None:
    target = target_of(word)
    assert (target.kind, target.text) == (kind, word)
    assert (target.pid or str(target.address or "")) == meaning


def test_a_file_that_exists_is_a_path_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace").touch()
    assert target_of("trace").kind is TargetKind.PATH
    assert target_of("other").kind is TargetKind.ADDRESS


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("", "a target is a pid"),
        ("0", "0 is not a pid"),
        ("9999999999", "is not a pid"),
        ("9" * 100_000, "a target is a pid"),
        ("host:0", "0 is not a port"),
        ("host:70000", "70000 is not a port"),
        ("a b", "not a pid, an address such as localhost:9012, or a path"),
        ("a\x1b[2J:1", "not a pid, an address such as localhost:9012, or a path"),
        ("gs://bucket/log", "copy the trace here"),
        ("http://localhost:6006", "without http://"),
        ("::1:9012", "brackets"),
        ("a\0b", "a target is a pid"),
    ],
)
def test_another_word_is_refused_in_a_sentence(word: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as raised:
        target_of(word)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


A, B, C = range(4_194_305, 4_194_308)
"""Pids that no process has, and so not the tests either: in a container theirs are small."""


def process(pid: int, **more: Any) -> Process:
    """A living job of this user with an agent."""
    facts = more.pop("facts", {})
    key = more.pop("key", ProcessKey(pid, 7))
    return Process(
        key=key, user="ann", command="python train.py", facts=facts,
        **{"interval_s": 1.0, "uid": os.geteuid(), **more},
    )  # fmt: skip


def host_with(*processes: Process) -> Snapshot:
    outcome = Outcome(AGENT, OK, processes=tuple(processes))
    return merge([outcome], HostFacts("vm", "", "", False, ""), 1.0, "0", judge=lambda s: s)


HELD = {"holds": ("/dev/accel0",)}


def part(pid: int, number: int, **more: Any) -> Process:
    return process(pid, facts={"process_index": number, "process_count": 2}, **more)


@pytest.mark.parametrize(
    ("processes", "pids"),
    [
        pytest.param([process(A)], [A], id="the only one with an agent"),
        pytest.param([process(A, interval_s=None, **HELD)], [A], id="the only holder"),
        pytest.param([process(A), process(B, **HELD)], [B], id="the one that holds the TPU"),
        pytest.param(
            [process(A, interval_s=None, **HELD), process(B)], [B], id="its child holds a node"
        ),
        pytest.param([part(B, 1), part(A, 0)], [A, B], id="all processes of one job"),
        pytest.param([part(B, 0), part(A, 1)], [B, A], id="in the order of JAX"),
    ],
)
def test_without_a_target_it_is_the_only_job(processes: list[Process], pids: list[int]) -> None:
    assert [p.pid for p in jobs_of(host_with(*processes))] == pids


@pytest.mark.parametrize(
    "processes",
    [
        [process(A), process(B)],
        [part(A, 0), part(B, 0)],
        [part(A, 0), part(B, 1), process(C)],
        [process(A, **HELD, interval_s=None), process(B, **HELD, interval_s=None)],
    ],
    ids=["two jobs", "the same number twice", "a third one", "holders"],
)
def test_of_several_jobs_the_user_chooses(processes: list[Process]) -> None:
    with pytest.raises(SeveralJobsError, match=f"pid {A}"):
        jobs_of(host_with(*processes))


@pytest.mark.parametrize(
    "processes",
    [
        [],
        [process(os.getpid())],
        [process(A, key=ProcessKey(A, 7, "/dev/shm/x.seg"))],
        [process(A, interval_s=None)],
    ],
    ids=["nothing", "we ourselves", "only a claim", "neither an agent nor a node"],
)
def test_without_a_job_the_sentence_says_what_to_do(processes: list[Process]) -> None:
    with pytest.raises(CaptureError, match=r"tpusmi\.start\(\).*start_server.*DIRECTORY") as raised:
        jobs_of(host_with(*processes))
    assert raised.value.trouble is Trouble.ABSENT


def test_a_job_of_another_user_does_not_hide_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    s = host_with(process(A, uid=1002), process(B, uid=1001))
    assert [p.pid for p in jobs_of(s)] == [B]


@pytest.mark.parametrize(
    ("trouble", "uid", "port"),
    [
        (Trouble.ABSENT, 1001, 9012),
        (Trouble.DENIED, 1001, None),
        (Trouble.DENIED, 1002, 9012),
    ],
    ids=["the agent cannot", "the job forbids it", "the files of another user"],
)
def test_the_published_port_is_used_unless_the_job_forbids_captures(
    trouble: Trouble, uid: int, port: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    monkeypatch.setattr("tpusmi.profiler.pid_capture.listener_of", lambda port: None)
    s = host_with(process(A, uid=uid, facts={"profiler_port": 9012}))
    assert fallback_port(Host(), s, A, trouble) == port


def test_a_published_port_on_which_another_process_listens_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = host_with(process(A, facts={"profiler_port": 9012}))
    for listener, port in ((A, 9012), (B, None)):
        monkeypatch.setattr("tpusmi.profiler.pid_capture.listener_of", lambda _, pid=listener: pid)
        assert fallback_port(Host(), s, A, Trouble.ABSENT) == port


@pytest.mark.parametrize("published", [None, 0, 70000, "9012"])
def test_without_a_port_of_its_own_it_is_a_usual_one_on_which_the_process_listens(
    published: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.profiler.pid_capture.usual_port_of", lambda pid: {A: 9999}.get(pid))
    s = host_with(process(A, facts={"profiler_port": published}))
    assert fallback_port(Host(), s, A, Trouble.ABSENT) == 9999
    assert fallback_port(Host(), s, B, Trouble.ABSENT) is None
    assert fallback_port(Host("/simulated"), s, A, Trouble.ABSENT) is None
    assert fallback_port(Host(), s, A, Trouble.DENIED) is None


def test_other_ways_are_named_only_where_they_would_help(tmp_path: Path) -> None:
    stat = tmp_path / "proc" / "5" / "stat"
    stat.parent.mkdir(parents=True)
    stat.write_text(f"5 (python) R {'0 ' * 18}900 0")
    host = Host(root=str(tmp_path), simulated=True)
    no_agent = CaptureError(Trouble.ABSENT, "process 5 has no agent: call tpusmi.start() in it")
    assert str(with_ways(host, 5, no_agent)).startswith(
        "process 5 has no agent: call tpusmi.start() in it, or call jax.profiler.start_server"
    )
    no_jax = CaptureError(Trouble.ABSENT, f"process 5 {NOT_JAX}")
    assert with_ways(host, 5, no_jax) is no_jax
    assert with_ways(host, 6, no_agent) is no_agent
    stat.write_text(f"5 (python) Z {'0 ' * 18}900 0")
    assert with_ways(host, 5, no_agent) is no_agent


def test_a_private_folder_is_gone_afterwards_and_no_other_user_can_enter_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modes = []

    def interrupted() -> None:
        with private_folder() as path:
            Path(path, "trace").write_text("x")
            modes.append(os.stat(path).st_mode & 0o777)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert modes == [0o700]
    assert [*tmp_path.iterdir()] == []


def test_what_a_killed_run_left_is_removed_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, target = tmp_path / f"{PREFIX}left", tmp_path / "precious"
    left.mkdir()
    (left / "trace").write_text("x")
    target.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(target)
    with private_folder() as first, private_folder() as second:
        assert os.path.isdir(first)
        assert first != second
        assert not left.exists()
        assert target.exists()


def test_a_private_folder_is_not_made_where_other_users_can_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    other.mkdir()
    shared.chmod(0o777)
    victim = shared / f"{PREFIX}was-something-else"
    victim.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setattr(folders, "OTHERS", (str(other),))
    with private_folder() as path:
        assert os.path.dirname(path) == str(other)
    assert victim.exists()
    monkeypatch.setattr(folders, "OTHERS", ())
    with pytest.raises(CaptureError, match="other users can replace"), private_folder():
        pass


def test_what_is_mounted_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / f"{PREFIX}mounted"
    left.mkdir()
    listed = f"36 35 0:42 / {left} rw,relatime - fuse.sshfs x rw,user_id=1000\n".encode()
    monkeypatch.setattr("tpusmi.wire.mountinfo.listed", lambda process: listed)
    with private_folder():
        assert left.exists()


def test_where_no_folder_can_be_made_the_error_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    monkeypatch.setattr(folders, "OTHERS", ())
    with pytest.raises(CaptureError, match="no directory can be made"), private_folder():
        pass


def test_a_private_folder_is_in_shared_memory_where_the_root_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/']")

    assert folders.OTHERS[-1] == "/dev/shm"
    monkeypatch.setattr("tempfile.gettempdir", none)
    monkeypatch.setattr(folders, "OTHERS", ("/proc/nowhere", str(tmp_path)))
    with private_folder() as path:
        assert os.path.dirname(path) == str(tmp_path)
    monkeypatch.setattr(folders, "OTHERS", ("/proc/nowhere",))
    with pytest.raises(CaptureError, match=r"trace: no place for .* be written: set TMPDIR"):
        private_folder().__enter__()


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    locked, refusals = folders._locked, [None, None]
    monkeypatch.setattr(folders, "_locked", lambda p: refusals.pop() if refusals else locked(p))
    with private_folder() as path:
        assert os.path.isdir(path)


def test_tasks_run_at_the_same_moment_and_in_their_order() -> None:
    all_run = threading.Barrier(5, timeout=30)

    def task(n: int) -> int:
        all_run.wait()
        return n

    assert at_once([partial(task, n) for n in range(5)]) == [0, 1, 2, 3, 4]


def test_an_interrupt_lets_every_task_put_away_what_it_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleaned, all_run = [], threading.Barrier(3, timeout=30)

    def task() -> None:
        try:
            all_run.wait()
            for _ in range(3000):
                time.sleep(0.01)
        finally:
            cleaned.append(1)

    def interrupt() -> None:
        all_run.wait()
        time.sleep(0.05)  # until the others are waited for
        _thread.interrupt_main()

    monkeypatch.setattr("tpusmi.profiler.at_once.LOOK_EVERY_S", 0.01)
    monkeypatch.setattr("tpusmi.profiler.at_once.ENDED_WITHIN_S", 60.0)
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), without_collector():
        at_once([task, task, interrupt])
    assert cleaned == [1, 1]
    assert time.monotonic() - began_s < 20


def test_an_interrupt_while_tasks_are_started_ends_those_that_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_begun, cleaned = threading.Event(), []

    def task() -> None:
        try:
            has_begun.set()
            for _ in range(3000):
                time.sleep(0.01)
        finally:
            cleaned.append(1)

    class Broken(_Running[None]):
        def __init__(self, task: Callable[[], None]) -> None:
            if has_begun.is_set():
                raise KeyboardInterrupt
            super().__init__(task)
            assert has_begun.wait(30)

    monkeypatch.setattr("tpusmi.profiler.at_once._Running", Broken)
    monkeypatch.setattr("tpusmi.profiler.at_once.ENDED_WITHIN_S", 60.0)
    with pytest.raises(KeyboardInterrupt):
        at_once([task, task])
    assert cleaned == [1]


def test_an_error_of_one_task_is_raised_when_all_have_ended() -> None:
    def fails() -> int:
        raise CaptureError(Trouble.FAILED, "no")

    with pytest.raises(CaptureError, match="no"):
        at_once([fails, lambda: 1])


def write(path: Path, *objects: object) -> str:
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    return str(path)


def test_saved_json_is_read_back(tmp_path: Path) -> None:
    one = to_object(EMPTY)
    failed = {"schema": 1, "target": "b:1", "error": {"trouble": "busy", "message": "no"}}
    path = tmp_path / "old.json"
    assert read_saved(write(path, one)) == [EMPTY]
    assert read_saved(write(path, {"schema": 1, "hosts": [one, failed, one]})) == [EMPTY, EMPTY]
    assert read_saved(write(path, one, one, failed)) == [EMPTY]
    assert read_saved(write(path, {"schema": 1, "old": {}, "new": one})) == [EMPTY]
    for nothing in (failed, {"schema": 1, "hosts": [failed]}):
        with pytest.raises(CaptureError, match="no capture in it was successful"):
            read_saved(write(path, nothing))
    path.write_text(json.dumps(one, indent=2))
    assert contents_of(str(path)).profiles == (EMPTY,)


def test_a_saved_profile_of_countless_lists_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_objects, "CONTAINERS_MOST", 1000)
    (tmp_path / "old.json").write_text("{" + "[]," * 1001)
    with pytest.raises(CaptureError, match="it has more than 1,000 lists and objects"):
        read_saved(str(tmp_path / "old.json"))


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[1, 2]", "{}", "[" * 100_000),
        *('{"schema": 2}', '{"schema": 1, "hosts": 3}', '{"new": 1}'),
    ],
    ids=lambda text: text[:20],
)
def test_other_json_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(CaptureError, match="is not a saved profile: ") as raised:
        contents_of(str(path))
    assert raised.value.trouble is Trouble.UNREADABLE


def test_a_path_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, trouble in (("pipe", Trouble.UNREADABLE), ("absent", Trouble.ABSENT)):
        with pytest.raises(CaptureError) as raised:
            contents_of(str(tmp_path / name))
        assert raised.value.trouble is trouble
        assert name in str(raised.value)
