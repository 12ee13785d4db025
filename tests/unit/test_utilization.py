"""How the agent reads libtpu's metrics of its own process: rows to devices, back-off, failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from support.waits import until

from tpusmi.agent import utilization
from tpusmi.agent.utilization import Utilization, joined
from tpusmi.model import LIBTPU, Reading, RowKey

DUTY, IDLE, BANDWIDTH = utilization.UTILIZATION_FIELDS


def row(metric: str, id: int, value: float, at_s: float = 1.0) -> Reading:
    return Reading(metric, RowKey("localhost:8431", id), value, at_s, LIBTPU, 5.0)


def duties(ids: Sequence[int | None], rows: Sequence[int], may_be_partial: bool) -> list[object]:
    """The duty cycle of each device, when each row says 10 times its id."""
    found = joined([row(DUTY, id, 10.0 * id) for id in rows], ids, may_be_partial)
    return [duty for duty, _, _ in found]


@pytest.mark.parametrize(
    ("ids", "rows", "may_be_partial", "expected"),
    [
        pytest.param([0, 1], [1, 0], True, [0.0, 10.0], id="by id, in any order"),
        pytest.param([8, 9, 12, 13], [8, 9, 12, 13], True, [80, 90, 120, 130], id="gaps"),
        pytest.param([0, 1, 2, 3], [0, 1, 3], True, [0, 10, None, 30], id="3 of 4 answered"),
        pytest.param([8, 9], [0, 1], True, [0, 10], id="other ids, as many: by order"),
        pytest.param([9, 8], [4, 5], True, [50, 40], id="by the order of ids, not of the list"),
        pytest.param([8, 9], [0, 1, 2], True, [None, None], id="other ids, not as many"),
        pytest.param([8, 9], [8, 0, 1], True, [None, None], id="rows of others besides"),
        pytest.param([0, 1, 2, 3], [0, 1], False, [None] * 4, id="v3: per chip, for no core"),
        pytest.param([0, 1, 2, 3], [0, 1, 2, 3], False, [0, 10, 20, 30], id="v3: per core"),
        pytest.param([None, 1], [0, 1], True, [None, None], id="a device without an id"),
        pytest.param([], [0, 1], True, [], id="no devices"),
        pytest.param([0, 1], [], True, [None, None], id="no program loaded"),
    ],
)
def test_rows_find_their_devices(
    ids: list[int | None], rows: list[int], may_be_partial: bool, expected: list[object]
) -> None:
    assert duties(ids, rows, may_be_partial) == expected


def test_each_metric_is_joined_for_itself() -> None:
    rows = [row(DUTY, 0, 50.0), row(IDLE, 0, 0.5), row(IDLE, 1, 1.5), row("hbm_used_bytes", 0, 9.0)]
    assert joined(rows, [0, 1], False) == ((None, 0.5, None), (None, 1.5, None))


def test_only_generations_with_one_device_a_chip_may_answer_in_part() -> None:
    assert utilization._has_one_device_per_chip("TPU v5 lite")
    assert not utilization._has_one_device_per_chip("TPU v3")
    assert not utilization._has_one_device_per_chip("TPU of tomorrow")
    assert not utilization._has_one_device_per_chip(None)


@pytest.mark.parametrize(
    ("platform", "variable", "wanted"),
    [("tpu", None, True), ("tpu", "0", False), ("tpu", "1", True), ("cpu", None, False)],
)
def test_only_a_tpu_is_asked_and_only_unless_told_not_to(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str | None, wanted: bool
) -> None:
    monkeypatch.delenv("TPUSMI_UTILIZATION", raising=False)
    if variable is not None:
        monkeypatch.setenv("TPUSMI_UTILIZATION", variable)
    assert utilization.is_enabled(platform) is wanted


class Server:
    """A metrics server that answers as it is told."""

    def __init__(self, answer: Callable[[float], Sequence[Reading]]) -> None:
        self._answer = answer
        self.loading_s = 0.0
        self.asked_at_s: list[float] = []
        self.asked = threading.Event()
        self.closed = threading.Event()

    def read(self, now_s: float) -> Sequence[Reading]:
        assert not self.closed.is_set()
        self.asked_at_s.append(now_s)
        self.asked.set()
        return self._answer(now_s)

    def close(self) -> None:
        self.closed.set()


def asking(server: Server, ids: Sequence[int] = (0, 1), period_s: float = 0.01) -> Utilization:
    thread = Utilization(ids, "TPU v5 lite", period_s, lambda: server)
    thread.start()
    return thread


def test_an_answer_is_kept_with_its_age_and_its_period() -> None:
    server = Server(lambda now_s: [row(DUTY, 0, 42.0, now_s), row(DUTY, 1, 43.0, now_s - 1)])
    thread = asking(server)
    until(lambda: thread.busy.devices)
    busy = thread.busy
    assert busy.at_s is not None
    assert busy.period_s is not None
    assert busy.devices == ((42.0, None, None), (43.0, None, None))
    assert busy.at_s + 1 in server.asked_at_s  # as old as its oldest row
    assert busy.period_s >= 0.01
    thread.stop()
    assert server.closed.is_set()
    assert not thread.is_alive()


def test_nobody_who_does_not_answer_is_asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    thread = Utilization([0], "TPU v5 lite", 0.01, lambda: server)

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 9:
            thread._end.set()
        return False

    monkeypatch.setattr(thread._end, "wait", wait)
    monkeypatch.setattr(thread._pace, "wait_s", lambda now_s: 0.0)  # a slow machine's is longer
    server = Server(lambda now_s: [])
    thread.start()
    thread.join(60)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert thread.busy.devices == ()
    assert thread.failure is None


def test_what_was_answered_before_is_not_a_new_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    thread = Utilization([0], "TPU v5 lite", 0.01, lambda: server)

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 4:
            thread._end.set()
        return False

    monkeypatch.setattr(thread._end, "wait", wait)
    monkeypatch.setattr(thread._pace, "wait_s", lambda now_s: 0.0)  # a slow machine's is longer
    server = Server(lambda now_s: [row(DUTY, 0, 42.0, at_s=7.0)])
    thread.start()
    thread.join(60)
    assert waits[1:] == [1, 2, 4]
    assert thread.busy.devices
    assert thread.busy.at_s == 7.0


def test_after_an_error_it_does_not_know_it_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utilization, "AGAIN_S", (0.01, 0.01))
    asked: list[float] = []

    def fail_once(now_s: float) -> Sequence[Reading]:
        asked.append(now_s)
        if len(asked) == 1:
            raise AttributeError("partially initialized module")
        return [row(DUTY, 0, 42.0, at_s=7.0)]

    thread = Utilization([0], "TPU v5 lite", 0.01, lambda: Server(fail_once))
    thread.start()
    until(lambda: thread.busy.devices)
    assert thread.failure is None
    thread.stop()


def test_an_error_that_stays_ends_it_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utilization, "AGAIN_S", (0.01, 0.01))

    def fail(now_s: float) -> Sequence[Reading]:
        raise TypeError("a new grpc")

    servers = [Server(fail) for _ in range(3)]
    again = iter(servers)
    thread = Utilization([0], "TPU v5 lite", 0.01, lambda: next(again))
    thread.start()
    thread.join(60)
    assert thread.failure == "TypeError: a new grpc"
    assert all(server.closed.is_set() for server in servers)  # also while it waits to begin again


def test_where_grpc_is_not_installed_it_ends_without_a_word() -> None:
    def fail(now_s: float) -> Sequence[Reading]:
        raise ImportError("No module named 'grpc'")

    thread = Utilization([0], "TPU v5 lite", 1.0, lambda: Server(fail))
    thread.start()
    thread.join(60)
    assert thread.failure is None


def test_a_server_that_hangs_does_not_keep_stop_waiting() -> None:
    release = threading.Event()

    def hang(now_s: float) -> Sequence[Reading]:
        release.wait(30)
        return []

    server = Server(hang)
    thread = asking(server)
    assert server.asked.wait(30)
    before = time.monotonic()
    thread.stop()
    assert time.monotonic() - before < utilization.END_S + 15
    release.set()
    thread.join(30)


def test_a_dear_answer_is_asked_for_less_often() -> None:
    def burn(now_s: float) -> Sequence[Reading]:
        until_s = time.thread_time() + 0.01
        while time.thread_time() < until_s:
            pass
        return [row(DUTY, 0, 1.0, now_s)]

    thread = asking(Server(burn))
    until(lambda: thread._pace.period_s > 10)
    thread.stop()
