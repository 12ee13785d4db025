"""A viewer and the agents that it cannot trust: nothing they answer harms it or holds it up."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import segments
from support.waits import until, with_a_short_limit

from tpusmi.model import Host
from tpusmi.profiler import in_process
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.wire import capture_files, identity
from tpusmi.wire.capture_messages import CAPTURING, DONE, AgentAnswer, AgentRequest

WHO = identity.me()
STRANGER = 12345
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
REQUEST = CaptureRequest(duration_ms=10, deadline_s=60.0, bytes_most=1000)
Act = Callable[[Path, AgentRequest], None]


class HostileAgent:
    """The segment of this very process, whose agent does with a request what the test wants."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.segment = segments.my_segment(directory, captures=1)
        self._ended = threading.Event()
        """The viewer has what it asked for, or has given up."""

    def serve(self, act: Act) -> None:
        own = WHO[0], *WHO[2::2]

        def take() -> AgentRequest | None:  # None also while it is being written
            if not capture_files.is_waiting(self.segment.path):
                return None
            return capture_files.take_request(self.segment.path, own, WHO.uid)

        request = until(lambda: take() or self._ended.is_set())
        if isinstance(request, AgentRequest):
            act(self.folder(request), request)

    def folder(self, request: AgentRequest) -> Path:
        return self.directory / capture_files.folder_name(self.segment.path, request.nonce)

    def answer(self, request: AgentRequest, place: str | None = None) -> None:
        usual = f"{self.folder(request).name}/{capture_files.TRACE_NAME}"
        done = AgentAnswer(request.nonce, DONE, trace=place or usual, trace_bytes=7)
        capture_files.write_answer(self.segment.path, done)

    def capture(self, act: Act, request: CaptureRequest = REQUEST) -> CapturedTrace:
        """What comes of a capture; the files of the viewer are gone after it."""
        self._ended.clear()
        thread = threading.Thread(target=self.serve, args=(act,))
        thread.start()
        traces = self.directory.parent / "traces"
        traces.mkdir(exist_ok=True)
        host = Host(segment_dir=str(self.directory))
        try:
            return in_process.capture(host, WHO.pid, request, str(traces), lambda _: None)
        except CaptureError:
            assert list(traces.iterdir()) == []
            raise
        finally:
            self._ended.set()
            thread.join(60)
            suffixes = {path.suffix for path in self.directory.iterdir()}
            assert suffixes <= {".seg", capture_files.FOLDER}

    def refusal(self, act: Act, request: CaptureRequest = REQUEST) -> str:
        with pytest.raises(CaptureError) as caught:
            self.capture(act, request)
        assert caught.value.trouble is Trouble.FAILED
        return str(caught.value)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[HostileAgent]:
    directory = tmp_path / "segments"
    directory.mkdir()
    made = HostileAgent(directory)
    yield made
    made.segment.close()


def test_an_honest_answer_gives_the_trace(agent: HostileAgent) -> None:
    def act(folder: Path, request: AgentRequest) -> None:
        folder.mkdir()
        (folder / capture_files.TRACE_NAME).write_bytes(b"a trace")
        agent.answer(request)

    trace = agent.capture(act)
    assert Path(trace.path).read_bytes() == b"a trace"
    assert trace.capture.trace_bytes == 7


@pytest.mark.parametrize("place", ["/etc/passwd", "../../../etc/passwd", "\x1b[2J", "x" * 900])
def test_no_other_place_is_read(agent: HostileAgent, place: str) -> None:
    assert "names no place" in agent.refusal(lambda _, request: agent.answer(request, place))


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "second name", "missing"])
def test_a_trace_that_is_not_a_plain_file_is_not_read(agent: HostileAgent, kind: str) -> None:
    def act(folder: Path, request: AgentRequest) -> None:
        folder.mkdir()
        trace = folder / capture_files.TRACE_NAME
        if kind == "link":
            trace.symlink_to("/etc/passwd")
        elif kind == "pipe":
            os.mkfifo(trace)
        elif kind == "directory":
            trace.mkdir()
        elif kind == "second name":
            (folder / "other").write_bytes(b"1")
            os.link(folder / "other", trace)
        agent.answer(request)

    began_s = time.monotonic()
    assert agent.refusal(act)
    assert time.monotonic() - began_s < 15


@ROOT
def test_a_trace_of_another_user_is_not_read(agent: HostileAgent) -> None:
    def act(folder: Path, request: AgentRequest) -> None:
        folder.mkdir()
        trace = folder / capture_files.TRACE_NAME
        trace.write_bytes(b"1")
        os.chown(trace, STRANGER, -1)
        agent.answer(request)

    assert "not a file of the user" in agent.refusal(act)


def test_a_trace_larger_than_was_said_is_not_copied(agent: HostileAgent) -> None:
    def act(folder: Path, request: AgentRequest) -> None:
        folder.mkdir()
        with (folder / capture_files.TRACE_NAME).open("wb") as trace:
            trace.truncate(2**40)
        agent.answer(request)

    assert "over 1000" in agent.refusal(act)


def test_a_trace_that_would_fill_the_disk_of_the_viewer_is_not_copied(
    agent: HostileAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(folder: Path, request: AgentRequest) -> None:
        folder.mkdir()
        (folder / capture_files.TRACE_NAME).write_bytes(bytes(900))
        agent.answer(request)

    disk = SimpleNamespace(f_blocks=9, f_bavail=1700, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda folder: disk)
    assert "too much for the disk" in agent.refusal(act)


@pytest.mark.parametrize("content", [b"", b"[" * 4000, b"\xff" * 4096, b"{}" * 9999])
def test_an_answer_that_is_garbage_is_waited_for_until_the_deadline(
    agent: HostileAgent, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "SILENT_S", 0.2)

    def act(folder: Path, request: AgentRequest) -> None:
        name = capture_files.answer_name(agent.segment.path, request.nonce)
        (agent.directory / name).write_bytes(content)

    assert "is silent" in agent.refusal(act)


def test_an_answer_behind_a_link_or_a_pipe_is_not_read(
    agent: HostileAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "SILENT_S", 0.2)

    def act(folder: Path, request: AgentRequest) -> None:
        name = capture_files.answer_name(agent.segment.path, request.nonce)
        os.mkfifo(agent.directory / name)

    assert "is silent" in agent.refusal(act)


@with_a_short_limit
def test_a_capture_that_goes_on_and_on_ends_at_the_deadline(agent: HostileAgent) -> None:
    def act(folder: Path, request: AgentRequest) -> None:
        capture_files.write_answer(agent.segment.path, AgentAnswer(request.nonce, CAPTURING))

    soon = REQUEST._replace(deadline_s=1.0)
    assert "took too long: it was capturing" in agent.refusal(act, soon)


@pytest.mark.parametrize(
    ("captures", "trouble", "words"),
    [
        (None, Trouble.ABSENT, "too old"),
        ("1", Trouble.ABSENT, "too old"),
        (0, Trouble.DENIED, "TPUSMI_PROFILE=0"),
    ],
)
def test_what_the_segment_says_about_captures_decides_at_once(
    tmp_path: Path, captures: object, trouble: Trouble, words: str
) -> None:
    writer = segments.my_segment(tmp_path, captures=captures)
    host = Host(segment_dir=str(tmp_path))
    with pytest.raises(CaptureError, match=words) as caught:
        in_process.capture(host, WHO.pid, REQUEST, str(tmp_path), lambda _: None)
    assert caught.value.trouble is trouble
    assert os.listdir(tmp_path) == [os.path.basename(writer.path)]
    writer.close()
