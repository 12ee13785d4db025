"""What the processes of a job tell each other: how long it is, when it was put, and whose it is."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.segments import GIB, facts
from support.waits import until

from tpusmi.agent import own_slice, slice_service
from tpusmi.agent.own_slice import OwnSlice
from tpusmi.agent.segment import Segment
from tpusmi.agent.slice_members import Members
from tpusmi.agent.slice_text import place_of, text_of
from tpusmi.model.slice_hosts import SILENT_PERIODS
from tpusmi.wire.layout import DEVICE_FIELDS, PROCESS_FIELDS, SLICE_JSON, SLICE_NONE, slice_room
from tpusmi.wire.slice_summary import (
    DEVICES_MOST,
    PERIOD_LEAST_S,
    REQUESTS_MOST_PER_S,
    REST,
    SUMMARY_MOST,
    UNPACKED_MOST,
    Head,
    head_of,
    packed,
    period_s,
    row_of,
    summary,
    unpacked,
)

HEAD = Head(
    version=1, sequence=123_456, wall_s=1_700_000_000.123456, period_s=25.6, place=2**32 - 1
)


INTERVAL_S = 7.5


def sample(devices: int) -> list[float]:
    """A sample in which every number is as long as it gets."""
    process = dict.fromkeys(PROCESS_FIELDS, 12_345.678901) | {
        "phase": 2.0,
        "steps": 1e9,
        "interval_s": INTERVAL_S,
    }
    device = dict.fromkeys(DEVICE_FIELDS, 33.333333) | {
        "hbm_used_bytes": 95.0 * GIB + 1,
        "hbm_limit_bytes": 95.5 * GIB,
    }
    row = [device[name] for name in DEVICE_FIELDS]
    return [time.monotonic(), 2.0, *(process[name] for name in PROCESS_FIELDS), *row * devices]


def test_a_summary_of_eight_devices_takes_less_than_600_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "t1v-n-0123abcd-w-255.europe-west4-b.c.x")
    said = facts(8, warnings=[{"code": "no_memory_profile", "message": "x" * 300}])
    said["devices"] = [
        {"id": 2040 + i, "coords": [15, 15, 31], "core_on_chip": 1, "slice_index": 12}
        for i in range(8)
    ]
    text = text_of(HEAD, sample(8), 12.3456, said)
    assert len(text.encode()) < 600, len(text)
    assert row_of(text) is not None


def test_a_process_of_very_many_devices_names_the_first_ones() -> None:
    row = row_of(text_of(HEAD, sample(300), 0.5, facts(300)))
    assert row is not None
    assert len(row[len(Head._fields) + len(REST)]) == DEVICES_MOST
    assert row[-2:] == [None, 300]


def test_a_sample_in_which_nothing_is_known_is_all_null() -> None:
    row = row_of(text_of(HEAD, [float("nan")] * len(sample(1)), 0.5, {}))
    assert row is not None
    assert row[-1] == [[None] * 7]
    assert row[7:13] == [None, None, None, None, None, 0.5]


@pytest.mark.parametrize("processes", [2, 4, 20, 64, 256, 1000, 4096])
def test_the_coordinator_gets_at_most_20_requests_a_second(processes: int) -> None:
    requests_per_s = 2 * processes / period_s(processes)
    assert requests_per_s <= REQUESTS_MOST_PER_S
    assert period_s(processes) >= PERIOD_LEAST_S


def test_a_thousand_processes_that_start_together_ask_one_after_the_other() -> None:
    count = 1000
    starts = sorted(index * own_slice.GOLDEN % 1.0 * period_s(count) for index in range(count))
    in_a_second = [sum(at <= x < at + 1.0 for x in starts) for at in starts]
    assert 2 * max(in_a_second) <= 1.2 * REQUESTS_MOST_PER_S


def test_no_blob_is_larger_than_what_is_read() -> None:
    line = [0, 12.345, -0.012, ["x" * (SUMMARY_MOST - 4)]]
    count = UNPACKED_MOST // SUMMARY_MOST
    content = unpacked(packed((1, 2, 0, 77, 2.0), [line] * (count - 8)))
    assert content is not None
    assert len([*content[1]]) == count - 8
    with pytest.raises(OverflowError):
        packed((1, 2, 0, 77, 2.0), [line] * count)


def test_what_a_thousand_hosts_say_has_room() -> None:
    lines = [
        [i, 12.345, -0.012, row_of(text_of(HEAD._replace(sequence=i), sample(8), 0.5, facts(8)))]
        for i in range(1000)
    ]
    blob = packed((1, 1000, 0, 77, 100.0), lines)
    assert len(blob) < slice_room(1000)


# The bookkeeping of the others.


def put(index: int, sequence: int, wall_s: float, place: int = 0, period: float = 2.0) -> str:
    """A summary with next to nothing in it."""
    head = Head(version=1, sequence=sequence, wall_s=wall_s, period_s=period, place=place or index)
    return summary(head, [None] * 10, [])


def line_of(members: Members, index: int, now_s: float) -> list[Any]:
    return next(list(line) for line in members.lines(now_s) if line[0] == index)


def test_clocks_that_may_agree_are_not_called_different() -> None:
    members = Members(own=0)
    for n in range(5):  # each summary is read 4.5 s after it was put, and looks are 5 s apart
        at_s = 5.0 * n
        members.note({1: put(1, n + 1, 1000.0 + at_s - 4.5)}, at_s, 1000.0 + at_s)
    _, age_s, difference_s, _ = line_of(members, 1, 20.0)
    assert difference_s == 0.0
    assert 0.0 <= age_s <= 5.0


def test_the_difference_of_two_clocks_is_found_between_its_bounds() -> None:
    members = Members(own=0)
    ahead_s = 30.0
    for i in range(20):
        at_s = 2.1 * i
        put_at_s = 2.0 * i - 0.3
        texts = {1: put(1, i + 1, 1000.0 + put_at_s + ahead_s)}
        members.note(texts, at_s, 1000.0 + at_s)
    _, age_s, difference_s, _ = line_of(members, 1, 40.0)
    assert difference_s == pytest.approx(ahead_s, abs=0.8)
    assert age_s == pytest.approx(40.0 - put_at_s, abs=0.8)


def test_a_clock_that_is_set_makes_no_host_silent() -> None:
    members = Members(own=0)
    for i in range(10):
        jump_s = 3600.0 if i == 9 else 0.0
        members.note({1: put(1, i + 1, 1000.0 + 2 * i + jump_s)}, 2.0 * i, 1000.0 + 2 * i)
    _, age_s, difference_s, _ = line_of(members, 1, 18.0)
    assert 0 <= age_s <= 2.0
    assert difference_s == pytest.approx(3600.0, abs=2.0)


def test_a_host_that_says_nothing_new_grows_older() -> None:
    members = Members(own=0)
    for i in range(5):
        members.note({1: put(1, 7, 1000.0)}, 2.0 * i, 1000.0 + 2 * i)
    assert line_of(members, 1, 8.0)[1] == pytest.approx(8.0)


def test_a_process_that_ended_after_its_first_report_and_was_started_again_is_heard_of() -> None:
    members = Members(own=0)
    for at_s in range(0, 60, 2):
        members.note({1: put(1, 1, 1000.0)}, at_s, 1000.0 + at_s)
    members.note({1: put(1, 1, 1059.0)}, 60.0, 1060.0)
    assert line_of(members, 1, 60.0)[1] < 5.0


def test_a_host_that_takes_its_summary_back_is_gone() -> None:
    members = Members(own=0)
    members.note({1: put(1, 1, 1000.0)}, 0.0, 1000.0)
    members.note({}, 2.0, 1002.0)
    assert [*members.lines(2.0)] == []


def test_the_lowest_living_process_of_a_place_reads() -> None:
    members = Members(own=3)
    members.note({2: put(2, 1, 1000.0, place=9), 3: put(3, 1, 1000.0, place=9)}, 0.0, 1000.0)
    assert members.has_other_reader(9, 1.0)
    assert not members.has_other_reader(8, 1.0)
    assert not members.has_other_reader(9, SILENT_PERIODS * 2.0 + 0.1)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[1", "[" * 4000, "[1,1,1,1]", '["1",1,1,1,1]', "[1,1,NaN,1,1]",
     "[1,1,1e999,1,1]", "[1,-1,1,1,1]", "[true,1,1,1,1]", "1" * 5000,
     "[" + "1," * SUMMARY_MOST + "1]",
     *(f"[1,1,1.0,1.0,1,{'[' * n}{']' * n}]" for n in (300, 900, 990, 994))],
)  # fmt: skip
def test_a_summary_that_cannot_be_believed_is_no_host(text: str) -> None:
    members = Members(own=0)
    members.note({1: text, 2: put(2, 1, 1.0)}, 1.0, 1.0)
    lines = [*members.lines(1.0)]
    assert [line[0] for line in lines] == [2]
    assert unpacked(packed((1, 3, 0, 77, 2.0), lines)) is not None


def test_processes_that_share_a_directory_share_a_place(tmp_path: Any) -> None:
    (tmp_path / "other").mkdir()
    assert place_of(str(tmp_path)) == place_of(str(tmp_path)) > 0
    assert place_of(str(tmp_path)) != place_of(str(tmp_path / "other"))
    assert place_of(str(tmp_path / "missing")) == 0


# The thread, with a client in JAX's place.


class Client:
    """The functions of JAX's client that the agent uses."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.before: Callable[[], None] = lambda: None
        self.asked: list[str] = []

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        assert allow_overwrite
        self.asked.append("set")
        self.before()
        self.texts[key] = value

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        self.asked.append("get")
        self.before()
        return [item for item in self.texts.items() if item[0].startswith(key)]

    def key_value_delete(self, key: str) -> None:
        self.asked.append("delete")
        self.before()
        self.texts.pop(key, None)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Any:
    """JAX's state, of process 1 of 3."""
    module: Any = types.ModuleType("jax._src.distributed")
    module.global_state = types.SimpleNamespace(
        client=Client(), process_id=1, num_processes=3, coordinator_address="10.0.0.1:8476"
    )
    monkeypatch.setitem(sys.modules, "jax._src.distributed", module)
    monkeypatch.setattr(own_slice, "period_s", lambda processes: 0.05)
    return module.global_state


@pytest.fixture
def segment(tmp_path: Any) -> Iterator[Segment]:
    made = Segment(str(tmp_path), 0o644)
    made.open(1, 3)
    made.append(sample(1))
    yield made
    made.end(keep=False)


def started(segment: Segment) -> OwnSlice:
    ours = OwnSlice()
    assert ours.find() == 3
    ours.begin(segment)
    return ours


def kinds_written(ours: OwnSlice, segment: Segment, until_kind: int) -> bool:
    """Publish until the newest of the thread is of that kind."""

    def look() -> bool:
        ours.publish(segment)
        thread = ours._thread
        return thread is not None and thread.payload is not None and thread.payload[0] == until_kind

    return until(look)


def test_the_thread_puts_and_reads_and_takes_back(state: Any, segment: Segment) -> None:
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    assert [*state.client.texts] == ["tpusmi/slice/1"]
    ours.stop()
    assert state.client.texts == {}
    assert ours.notes == {}


def test_an_agent_that_takes_no_samples_stops_reporting(state: Any, segment: Segment) -> None:
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    segment.append([time.monotonic() - SILENT_PERIODS * INTERVAL_S - 0.1, *sample(1)[1:]])

    def stands_still() -> bool:
        before = state.client.texts["tpusmi/slice/1"]
        time.sleep(0.2)
        return bool(state.client.texts["tpusmi/slice/1"] == before)

    until(stands_still)
    before = state.client.texts["tpusmi/slice/1"]
    segment.append(sample(1))
    until(lambda: state.client.texts["tpusmi/slice/1"] != before)
    ours.stop()


def test_an_expensive_round_makes_no_host_silent(state: Any, segment: Segment) -> None:
    spent: list[float] = []

    def spend() -> None:
        if not spent:
            spent.append(until_s := time.thread_time() + 0.05)
            while time.thread_time() < until_s:
                pass

    state.client.before = spend
    ours = started(segment)
    until(lambda: state.client.asked == ["set", "get", "set"])
    until(lambda: period_in(state.client.texts["tpusmi/slice/1"]) >= 50.0)
    assert state.client.asked == ["set", "get", "set"]
    ours.stop()


def period_in(text: str) -> float:
    head = head_of(row_of(text))
    assert head is not None
    return head.period_s


def test_what_has_no_room_turns_it_off(state: Any, segment: Segment) -> None:
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    thread = ours._thread
    assert thread is not None
    thread.payload = SLICE_JSON, b"x" * slice_room(3), 1.0
    ours.publish(segment)
    assert kinds_written(ours, segment, SLICE_NONE)
    ours.publish(segment)
    assert "has no room" in ours.notes["slice_off"]


def test_more_than_is_read_turns_it_off(
    state: Any, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.wire.slice_summary.UNPACKED_MOST", 30)
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_NONE)
    ours.publish(segment)
    assert "has no room" in ours.notes["slice_off"]


def test_an_error_of_the_client_turns_it_off_with_one_warning(
    state: Any, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_slice, "LEAVING_S", 0.0)
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)

    def fail() -> None:
        raise RuntimeError("UNAVAILABLE: failed to connect\nmany\nlines")

    state.client.before = fail
    assert kinds_written(ours, segment, SLICE_NONE)
    ours.publish(segment)
    text = "the other hosts of this job are not read: RuntimeError: UNAVAILABLE: failed to connect"
    assert ours.notes == {"slice_off": text}
    assert ours.find() == 1, "not again in this job"


def test_a_client_that_hangs_is_asked_no_more_and_says_nothing_of_this_process_in_the_end(
    state: Any, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_slice, "DEADLINE_S", 0.1)
    held = own_slice.Event()
    state.client.before = lambda: held.wait(20.0) and None
    asked = state.client.asked
    ours = started(segment)
    try:
        assert kinds_written(ours, segment, SLICE_NONE)
        assert "the coordinator has not answered for" in ours.notes["slice_off"]
    finally:
        held.set()
    thread = ours._thread
    assert thread is not None
    until(lambda: not thread.is_alive())
    assert asked == ["set", "delete"]
    assert state.client.texts == {}


def test_a_host_that_stood_still_itself_does_not_blame_the_coordinator(
    state: Any, segment: Segment
) -> None:
    held = own_slice.Event()
    state.client.before = lambda: held.wait(20.0) and None
    ours = started(segment)
    thread = ours._thread
    assert thread is not None
    began_s = until(lambda: thread._call_began_s)
    thread.give_up(began_s + 0.5)
    thread.give_up(began_s + 3600.0)
    assert thread.failure is None
    held.set()
    until(lambda: thread._call_began_s is None)
    thread.give_up(began_s + 3601.0)
    assert thread.failure is None
    ours.stop()


def test_a_job_that_leaves_the_service_ends_it_in_silence(state: Any, segment: Segment) -> None:
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    state.client = None
    assert kinds_written(ours, segment, SLICE_NONE)
    assert ours.notes == {}


def test_an_error_while_the_job_leaves_the_service_is_no_failure(
    state: Any, segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_slice, "LEAVING_S", 60.0)
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    failed = own_slice.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError("CANCELLED: the agent has shut down")

    state.client.before = fail
    assert failed.wait(20.0)
    state.client = None
    assert kinds_written(ours, segment, SLICE_NONE)
    assert ours.notes == {}


def test_a_job_that_joins_another_service_has_another_slice(state: Any, segment: Segment) -> None:
    ours = started(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    assert not ours.has_moved()
    state.client = None
    assert kinds_written(ours, segment, SLICE_NONE)
    assert not ours.has_moved()
    state.client, state.num_processes = Client(), 2
    assert ours.has_moved()
    assert ours.find() == 2
    assert not ours.has_moved()
    ours.begin(segment)
    assert kinds_written(ours, segment, SLICE_JSON)
    assert [*state.client.texts] == ["tpusmi/slice/1"]
    ours.stop()


def test_a_job_that_joins_its_first_service_late_has_a_slice_then(state: Any) -> None:
    joined, state.client = state.client, None
    ours = OwnSlice()
    assert ours.find() == 1
    assert not ours.has_moved()
    state.client = joined
    assert ours.has_moved()


def test_a_slice_that_is_off_is_not_looked_for_again(
    state: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwanted = OwnSlice()
    unwanted.wish = False
    failed = OwnSlice()
    failed.failure = "an error"
    for ours in (unwanted, failed):
        assert (ours.find(), ours.has_moved()) == (1, False)
    monkeypatch.setenv("TPUSMI_SLICE", "0")
    assert not OwnSlice().has_moved()


def test_a_jax_without_a_function_of_the_client_is_named(state: Any) -> None:
    state.client = types.SimpleNamespace(key_value_set=print, key_value_delete=print)
    ours = OwnSlice()
    assert ours.find() == 1
    assert "has no key_value_dir_get()" in ours.notes["slice_off"]


@pytest.mark.parametrize(
    "values", [{"client": None}, {"num_processes": 1}, {"num_processes": None}, {"process_id": "1"}]
)
def test_a_job_without_a_service_has_no_slice(state: Any, values: dict[str, Any]) -> None:
    vars(state).update(values)
    assert slice_service.find() is None
    assert OwnSlice().find() == 1


def test_the_environment_turns_it_off(state: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUSMI_SLICE", "0")
    assert OwnSlice().find() == 1


def test_a_stranger_in_the_store_is_not_believed(state: Any) -> None:
    service = slice_service.find()
    assert service is not None
    keys = ["tpusmi/slice/2", "tpusmi/slice/3", "tpusmi/slice/x", "tpusmi/slice/-1",
            "tpusmi/slice/99999999999999", "tpusmi/slice/²", "tpusmi/slice/0/0",
            "tpusmi/slice/x/1"]  # fmt: skip
    state.client.texts = dict.fromkeys(keys, "[]")
    assert service.texts() == {2: "[]"}


def test_the_slice_of_a_process_is_told_where_all_its_devices_say_the_same() -> None:
    def told(*slices: int | None) -> list[object]:
        said = facts(2)
        said["devices"] = [{"id": i, "slice_index": n} for i, n in enumerate(slices)]
        row = row_of(text_of(HEAD, sample(2), 0.5, said))
        assert row is not None
        return row[len(Head._fields) + len(REST) + 1 :]

    assert told(3, 3) == [3]
    assert told(0, 1) == told(None, None) == []
