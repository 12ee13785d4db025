"""How a simulated job answers requests for captures: as a real agent does."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.simulated_hosts import running_host, set_faults
from support.waits import until

from tpusmi.simulate.metric_answers import HBM_BYTES
from tpusmi.simulate.simulated_captures import SimulatedCaptures
from tpusmi.wire import capture_files, identity
from tpusmi.wire.capture_messages import (
    BUSY,
    CAPTURING,
    DONE,
    EXPIRED,
    FORBIDDEN,
    NO_BACKEND,
    REFUSED,
    TOO_LARGE,
    AgentAnswer,
    AgentRequest,
)

SHORT_MS, LIMIT_S = 30, 60.0


class Talk:
    """A simulated job's captures, and a viewer that asks for them."""

    def __init__(self, directory: Path, t_s: float = 60.0) -> None:
        self.running = running_host(str(directory), "v5e-4", t_s=t_s)
        devices = self.running.description["devices"]
        self.captures = SimulatedCaptures(self.running, devices, HBM_BYTES["v5e"])
        self.segments = directory / "segments"
        self.segments.mkdir(mode=0o700)
        self.who = identity.me()
        self.segment = f"{self.segments}/{self.who.pid}-{self.who.start_ticks}.seg"

    def ask(self, **fields: Any) -> str:
        """Write a request and let the job look. Returns its nonce."""
        nonce = capture_files.new_nonce()
        usual = {
            "nonce": nonce,
            "pid": self.who.pid,
            "start_ticks": self.who.start_ticks,
            "pid_namespace": self.who.pid_namespace,
            "duration_ms": SHORT_MS,
            "bytes_most": 2**30,
            "expires_s": time.time() + 100.0,
        }
        directory = os.open(self.segments, os.O_RDONLY)
        try:
            request = AgentRequest(**{**usual, **fields})
            capture_files.write_request(directory, self.segment, request, os.getuid())
        finally:
            os.close(directory)
        self.look()
        return nonce

    def look(self) -> None:
        self.captures.look(self.segment, self.who)

    def answer(self, nonce: str) -> AgentAnswer | None:
        """What the viewer reads now."""
        return capture_files.read_answer(
            self.segment,
            nonce,
            os.getuid(),
            lambda name, flags: os.open(self.segments / name, flags),
        )

    def last_answer(self, nonce: str) -> AgentAnswer:
        """The answer after which there is no other."""
        until_s = time.monotonic() + LIMIT_S
        while time.monotonic() < until_s:
            self.look()
            answer = self.answer(nonce)
            if answer is not None and answer.state in (DONE, REFUSED):
                return answer
            time.sleep(0.005)
        raise AssertionError("no answer came")

    def fetched(self, nonce: str) -> None:
        """The viewer has its trace."""
        (self.segments / capture_files.answer_name(self.segment, nonce)).unlink()
        self.look()


def test_a_request_brings_a_trace_and_leaves_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    nonce = talk.ask()
    first = talk.answer(nonce)
    assert first is not None
    assert first.state == CAPTURING
    done = talk.last_answer(nonce)
    assert done.state == DONE
    assert capture_files.is_place_of_trace(done.trace, talk.segment, nonce)
    data = Path(done.trace).read_bytes()
    assert len(data) == done.trace_bytes
    assert b"/device:TPU:3" in data
    assert Path(done.trace).parent.stat().st_mode & 0o777 == 0o700
    talk.fetched(nonce)
    assert not [*talk.segments.iterdir()]


def test_one_capture_at_a_time(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first, second = talk.ask(duration_ms=10_000), talk.ask()
    assert talk.last_answer(second).reason == BUSY
    talk.fetched(first)  # the viewer has left, as after Ctrl-C
    assert talk.last_answer(talk.ask()).state == DONE


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"bytes_most": 1000}, TOO_LARGE), ({"expires_s": 1.0}, EXPIRED)],
    ids=str,
)
def test_a_request_that_cannot_be_served_is_refused(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    talk = Talk(tmp_path)
    assert talk.last_answer(talk.ask(**fields)).reason == reason


def test_a_job_may_forbid_captures_at_any_time(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    set_faults(str(tmp_path), ("no-captures",))
    talk.running.refresh()
    assert talk.last_answer(talk.ask()).reason == FORBIDDEN


def test_a_job_that_still_loads_has_nothing_to_capture(tmp_path: Path) -> None:
    talk = Talk(tmp_path, t_s=1.0)
    assert talk.last_answer(talk.ask()).reason == NO_BACKEND


def test_a_request_for_another_process_is_not_taken(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    nonce = talk.ask(start_ticks=1)
    assert talk.answer(nonce) is None
    assert not [*talk.segments.iterdir()]


def test_what_no_viewer_fetches_is_removed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tpusmi.wire.capture_files.KEPT_S", 0.05)
    talk = Talk(tmp_path)
    seen: set[str] = set()

    def is_empty() -> bool:
        talk.look()
        left = {path.suffix for path in talk.segments.iterdir()}
        seen.update(left)
        return not left

    for request in ({}, {"expires_s": 1.0}):
        talk.ask(**request)
        until(is_empty)
    assert capture_files.FOLDER in seen, "there was a trace"
