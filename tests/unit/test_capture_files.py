"""Requests for captures, and answers: who wrote them, and for which process."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.wire import capture_files, capture_messages
from tpusmi.wire.capture_messages import (
    BUSY,
    CAPTURING,
    DONE,
    REFUSED,
    AgentAnswer,
    AgentRequest,
    answer_in,
    packed,
    request_in,
)

WHO = (71, 12345, 4026531836)
NONCE = "0123456789abcdef" * 2
STRANGER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


def request(**changes: object) -> AgentRequest:
    usual = AgentRequest(NONCE, *WHO, duration_ms=500, bytes_most=10**6, expires_s=time.time() + 30)
    return usual._replace(**changes)  # type: ignore[arg-type]


@pytest.fixture
def segment(tmp_path: Path) -> str:
    directory = tmp_path / "tpusmi-0"
    directory.mkdir(mode=0o755)
    return str(directory / "71-12345.seg")


def ask(segment: str, asked: AgentRequest, uid: int | None = None) -> None:
    fd = os.open(os.path.dirname(segment), os.O_RDONLY)
    try:
        capture_files.write_request(fd, segment, asked, os.geteuid() if uid is None else uid)
    finally:
        os.close(fd)


def ask_path(segment: str) -> Path:
    return Path(segment).with_name(capture_files.ask_name(segment))


def taken(segment: str) -> AgentRequest | None:
    return capture_files.take_request(segment, WHO, os.geteuid())


def answered(segment: str) -> AgentAnswer | None:
    directory = os.path.dirname(segment)
    return capture_files.read_answer(
        segment, NONCE, os.geteuid(), lambda name, flags: os.open(f"{directory}/{name}", flags)
    )


def test_a_request_is_taken_once(segment: str) -> None:
    assert not capture_files.is_waiting(segment)
    ask(segment, request(host_tracer_level=2))
    assert capture_files.is_waiting(segment)
    got = taken(segment)
    assert got is not None
    assert got.host_tracer_level == 2
    assert not capture_files.is_expired(got)
    assert not capture_files.is_waiting(segment)
    with pytest.raises(FileNotFoundError):
        taken(segment)


def test_a_second_request_waits_for_its_turn(segment: str) -> None:
    ask(segment, request())
    with pytest.raises(FileExistsError):
        ask(segment, request())


def test_a_request_for_another_process_is_removed_and_not_served(segment: str) -> None:
    ask(segment, request(start_ticks=99))
    assert taken(segment) is None
    assert not capture_files.is_waiting(segment)


@needs_root
def test_root_gives_the_request_to_the_user_of_the_job(segment: str) -> None:
    ask(segment, request(), uid=STRANGER)
    assert ask_path(segment).stat().st_uid == STRANGER


@needs_root
def test_a_request_of_another_user_is_left_alone(segment: str) -> None:
    ask(segment, request())
    os.chown(ask_path(segment), STRANGER, -1)
    assert taken(segment) is None
    assert capture_files.is_waiting(segment)


def test_a_link_a_pipe_and_a_second_name_are_not_read(segment: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(packed(request()))
    path = ask_path(segment)
    path.symlink_to(secret)
    assert_not_taken(segment)
    os.mkfifo(path)
    assert_not_taken(segment)
    os.link(secret, path)
    assert taken(segment) is None
    assert secret.exists()


def assert_not_taken(segment: str) -> None:
    try:
        assert taken(segment) is None
    except OSError:
        pass  # a link cannot be opened
    assert not capture_files.is_waiting(segment)


def test_an_empty_request_is_being_written_for_a_moment_only(segment: str) -> None:
    path = ask_path(segment)
    path.touch()
    assert taken(segment) is None
    assert path.exists()
    os.utime(path, (0, 0))
    assert taken(segment) is None
    assert not path.exists()


def test_a_directory_in_which_others_write_is_not_believed(segment: str) -> None:
    ask(segment, request())
    Path(segment).parent.chmod(0o777)
    assert taken(segment) is None
    Path(segment).parent.chmod(0o1777)
    assert taken(segment) is not None


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 121.0, 1e10])
def test_a_request_expires_and_lives_for_two_minutes_at_most(seconds: float) -> None:
    assert capture_files.is_expired(request(expires_s=time.time() + seconds))


def test_answers_follow_each_other_and_removing_one_says_that_it_was_fetched(segment: str) -> None:
    assert answered(segment) is None
    place = f"/tmp/tpusmi-0/71-12345.{NONCE}.capture/trace.xplane.pb"
    for answer in (
        AgentAnswer(NONCE, CAPTURING),
        AgentAnswer(NONCE, DONE, trace=place, trace_bytes=7),
    ):
        capture_files.write_answer(segment, answer)
        assert answered(segment) == answer
    assert capture_files.is_place_of_trace(place, segment, NONCE)
    assert not capture_files.is_fetched(segment, NONCE)
    os.unlink(Path(segment).with_name(capture_files.answer_name(segment, NONCE)))
    assert capture_files.is_fetched(segment, NONCE)
    assert os.listdir(os.path.dirname(segment)) == []


@needs_root
def test_an_answer_of_another_user_is_not_believed(segment: str) -> None:
    capture_files.write_answer(segment, AgentAnswer(NONCE, REFUSED, BUSY))
    path = Path(segment).with_name(capture_files.answer_name(segment, NONCE))
    os.chown(path, STRANGER, -1)
    assert answered(segment) is None


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        f"tmp/71-12345.{NONCE}.capture/trace.xplane.pb",
        f"../71-12345.{NONCE}.capture/trace.xplane.pb",
        f"/tmp/../71-12345.{NONCE}.capture/trace.xplane.pb",
        f"/tmp/72-12345.{NONCE}.capture/trace.xplane.pb",
        f"/tmp/\x1b[2J/71-12345.{NONCE}.capture/trace.xplane.pb",
        f"/{'x' * 2000}/71-12345.{NONCE}.capture/trace.xplane.pb",
    ],
)
def test_a_trace_is_only_fetched_from_a_place_of_the_request(path: str, segment: str) -> None:
    assert not capture_files.is_place_of_trace(path, segment, NONCE)


def test_old_files_of_captures_are_left_over_and_nothing_else(segment: str) -> None:
    status = os.stat(os.path.dirname(segment))
    now_s = status.st_mtime
    later_s = now_s + capture_files.LEFTOVER_S + 1
    name = capture_files.folder_name(segment, NONCE)
    assert capture_files.is_leftover(name, status, status.st_uid, later_s)
    assert not capture_files.is_leftover(name, status, status.st_uid, now_s)
    assert not capture_files.is_leftover(name, status, status.st_uid + 1, later_s)
    assert not capture_files.is_leftover("71-12345.seg", status, status.st_uid, later_s)


@given(
    st.binary(max_size=200)
    | st.lists(st.none() | st.floats() | st.text(max_size=5), max_size=5).map(
        lambda value: json.dumps(value).encode()
    )
)
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    assert request_in(data) is None
    assert answer_in(data) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "../../etc"},
        {"nonce": "x" * 32},
        {"pid": True},
        {"duration_ms": 10_001},
        {"duration_ms": -1},
        {"expires_s": float("nan")},
        {"expires_s": 10**400},
        {"bytes_most": 2**80},
        {"host_tracer_level": "1"},
    ],
)
def test_a_request_with_an_impossible_field_is_none(changes: dict[str, object]) -> None:
    assert request_in(packed(request())) is not None
    assert request_in(packed(request(**changes))) is None


def test_deep_json_is_not_a_request() -> None:
    assert request_in(b"[" * 4096) is None


def test_an_answer_of_a_later_version_is_not_read() -> None:
    data = packed(AgentAnswer(NONCE, CAPTURING))
    version = f'"version": {capture_messages.VERSION}'.encode()
    assert version in data
    assert answer_in(data.replace(version, b'"version": 2')) is None
