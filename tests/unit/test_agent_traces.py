"""The agent's use of jax.profiler: old versions of it, failures, and one that never comes back."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.clocks import takes_at_most
from support.waits import until

from tpusmi.agent import jax_trace, own_captures
from tpusmi.agent.own_captures import OwnCaptures
from tpusmi.wire import capture_files, identity
from tpusmi.wire.capture_messages import (
    BUSY,
    DONE,
    FAILED,
    HANGS,
    NO_BACKEND,
    NO_ROOM,
    REFUSED,
    AgentAnswer,
    AgentRequest,
)

WHO = identity.me()


class JaxProfiler:
    """jax.profiler of an old version: without ProfileOptions."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.stop: Callable[[], None] = lambda: None

    def start_trace(self, folder: str) -> None:
        if self.folder is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run")
        self.folder = folder

    def stop_trace(self) -> None:
        assert self.folder is not None
        self.stop()
        place = Path(self.folder, "plugins", "profile", "2026_01_01")
        place.mkdir(parents=True)
        (place / "host.xplane.pb").write_bytes(b"trace")
        (place / "host.trace.json.gz").write_bytes(b"events")
        self.folder = None


class State:
    """JAX's own state of a trace."""

    def __init__(self, folder: str) -> None:
        self.lock = threading.Lock()
        self.profile_session: object | None = object()
        self.log_dir: str | None = folder

    def reset(self) -> None:
        self.profile_session = self.log_dir = None


@pytest.fixture
def profiler(monkeypatch: pytest.MonkeyPatch) -> JaxProfiler:
    fake = JaxProfiler()
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(profiler=fake))
    monkeypatch.setattr(own_captures.jaxread, "backend", lambda: object())
    return fake


def request(**changes: Any) -> AgentRequest:
    usual = AgentRequest(
        nonce=capture_files.new_nonce(),
        pid=WHO.pid,
        start_ticks=WHO.start_ticks,
        pid_namespace=WHO.pid_namespace,
        duration_ms=10,
        bytes_most=1000,
        expires_s=time.time() + 30,
    )
    return usual._replace(**changes)


class Viewer:
    """Asks, looks and reads, as a viewer and the agent's thread do."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.segment = str(directory / f"{WHO.pid}-{WHO.start_ticks}.seg")
        self.captures = OwnCaptures(str(directory))

    def ask(self, asked: AgentRequest) -> AgentRequest:
        fd = os.open(self.directory, os.O_RDONLY)
        capture_files.write_request(fd, self.segment, asked, os.geteuid())
        os.close(fd)
        self.look()
        return asked

    def look(self) -> None:
        self.captures.look(self.segment, WHO)

    def answer(self, asked: AgentRequest) -> AgentAnswer | None:
        return capture_files.read_answer(
            self.segment,
            asked.nonce,
            os.geteuid(),
            lambda name, flags: os.open(f"{self.directory}/{name}", flags),
        )

    def last(self, asked: AgentRequest) -> AgentAnswer:
        def look() -> AgentAnswer | None:
            self.look()
            answer = self.answer(asked)
            return answer if answer is not None and answer.state in (DONE, REFUSED) else None

        return until(look)

    def fetch(self, asked: AgentRequest) -> None:
        name = capture_files.answer_name(self.segment, asked.nonce)
        os.unlink(self.directory / name)


@pytest.fixture
def viewer(tmp_path: Path) -> Viewer:
    directory = tmp_path / "segments"
    directory.mkdir()
    return Viewer(directory)


def test_an_old_jax_traces_with_a_note_and_nothing_stays(
    viewer: Viewer, profiler: JaxProfiler
) -> None:
    asked = viewer.ask(request())
    answer = viewer.last(asked)
    assert answer.state == DONE
    assert "every Python call" in answer.message
    trace = viewer.directory / answer.trace
    assert trace.read_bytes() == b"trace"
    assert not list(viewer.directory.glob("**/*.gz"))[1:]
    viewer.fetch(asked)
    until(lambda: os.listdir(viewer.directory) == [])


def test_options_are_those_that_were_asked_for(
    viewer: Viewer, profiler: JaxProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    start = profiler.start_trace
    profiler.ProfileOptions = SimpleNamespace  # type: ignore[attr-defined]

    def start_trace(folder: str, profiler_options: Any) -> None:
        given.append(profiler_options)
        start(folder)

    monkeypatch.setattr(profiler, "start_trace", start_trace)
    asked = viewer.ask(request(host_tracer_level=2))
    assert viewer.last(asked).message == ""
    assert vars(given[0]) == {"python_tracer_level": 0, "host_tracer_level": 2}
    viewer.captures.finish()
    assert os.listdir(viewer.directory) == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("ALREADY_EXISTS: Another profiling session active.", BUSY),
        ("RESOURCE_EXHAUSTED: x.xplane.pb; No space left on device", NO_ROOM),
        ("INTERNAL: \x1b[2J", FAILED),
    ],
)
def test_a_failed_stop_leaves_jax_ready_for_the_next_trace(
    viewer: Viewer,
    profiler: JaxProfiler,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    reason: str,
) -> None:
    states: list[State] = []

    def stop() -> None:
        assert profiler.folder is not None
        states.append(State(profiler.folder))
        module = SimpleNamespace(_profile_state=states[0])
        monkeypatch.setitem(sys.modules, "jax._src.profiler", module)
        raise ValueError(words)

    profiler.stop = stop
    asked = viewer.ask(request())
    answer = viewer.last(asked)
    assert (answer.state, answer.reason) == (REFUSED, reason)
    assert answer.message.isprintable()
    assert states[0].profile_session is None
    viewer.captures.finish()
    assert os.listdir(viewer.directory) == []


def test_the_trace_ends_also_when_its_viewer_cannot_be_told(
    profiler: JaxProfiler, tmp_path: Path
) -> None:
    """The directory of the answers may be full."""

    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        jax_trace.record(request(), str(tmp_path), lambda _: False, full)
    assert profiler.folder is None


def test_a_session_of_the_job_is_not_taken_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State("/home/ann/own")
    monkeypatch.setitem(sys.modules, "jax._src.profiler", SimpleNamespace(_profile_state=state))
    jax_trace._let_go("/tmp/ours")
    assert state.log_dir == "/home/ann/own"
    monkeypatch.setitem(sys.modules, "jax._src.profiler", SimpleNamespace())
    jax_trace._let_go("/tmp/ours")


def test_a_trace_that_the_job_began_after_it_had_ended_ours_is_not_ended(
    profiler: JaxProfiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own stop_trace() would raise an error."""
    folders = {name: str(tmp_path / name) for name in ("ours", "of the job")}
    os.mkdir(folders["ours"])
    state = State(folders["ours"])
    monkeypatch.setitem(sys.modules, "jax._src.profiler", SimpleNamespace(_profile_state=state))

    def meanwhile(seconds: float) -> bool:
        profiler.stop_trace()
        profiler.start_trace(folders["of the job"])
        state.log_dir = folders["of the job"]
        return False

    trace = jax_trace.record(request(), folders["ours"], meanwhile, lambda: None)
    assert Path(trace).read_bytes() == b"trace"
    assert (profiler.folder, state.log_dir) == (folders["of the job"], folders["of the job"])
    assert state.profile_session is not None


def test_a_jax_that_never_comes_back_is_said_to_hang_and_cleaned_up_when_it_does(
    viewer: Viewer, profiler: JaxProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_captures, "JAX_MOST_S", 0.2)
    back = threading.Event()
    profiler.stop = lambda: [back.wait(20)][:0]  # type: ignore[assignment, return-value]
    asked = viewer.ask(request())
    assert viewer.last(asked).reason == HANGS
    assert viewer.last(viewer.ask(request())).reason == HANGS
    back.set()
    viewer.captures.finish()
    until(lambda: os.listdir(viewer.directory) == [])


def test_a_capture_begins_no_earlier_than_the_backend(
    viewer: Viewer, profiler: JaxProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_captures.jaxread, "backend", lambda: None)
    assert viewer.last(viewer.ask(request())).reason == NO_BACKEND
    assert profiler.folder is None


def test_a_refusal_that_no_viewer_reads_is_removed(
    viewer: Viewer, profiler: JaxProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_captures.capture_files, "KEPT_S", 0.1)
    monkeypatch.setenv("TPUSMI_PROFILE", "off")
    asked = viewer.ask(request())
    assert viewer.answer(asked) is not None

    def is_gone() -> bool:
        viewer.look()
        return os.listdir(viewer.directory) == []

    until(is_gone)


def test_looking_costs_microseconds(viewer: Viewer) -> None:
    viewer.look()
    with takes_at_most(0.3):  # 0.006 s where the machine is not slow
        for _ in range(1000):
            viewer.look()
