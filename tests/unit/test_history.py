"""The ring of the last ten minutes, against a plain list of all readings."""

from __future__ import annotations

import sys
import threading

from hypothesis import given
from hypothesis import strategies as st
from support.clocks import takes_at_most

from tpusmi.model import (
    ASKED_OF_LIBTPU,
    METRICS,
    UNKNOWN,
    DeviceKey,
    History,
    ProcessKey,
    Reading,
)
from tpusmi.model.history import SERIES_MOST, UNKEPT

KEY, NAME = DeviceKey(None, 0), "hbm_used_bytes"


def reading(at_s: float, value: float, fresh_s: float = 0.0) -> Reading:
    return Reading(NAME, KEY, value, at_s, "agent", fresh_s)


@given(
    gaps=st.lists(st.floats(0.2, 30.0), max_size=60),
    until=st.integers(-40, 900),
    count=st.integers(1, 50),
)
def test_a_window_is_what_a_list_of_all_readings_says(
    gaps: list[float], until: int, count: int
) -> None:
    history, known, at_s = History(span_s=20), {}, 100.0
    for n, gap in enumerate(gaps):
        at_s += gap
        history.add([reading(at_s, n)])
        known[int(at_s)] = n
    oldest = int(at_s) - 20 + 1
    expected = [
        known.get(s, UNKNOWN) if s >= oldest else UNKNOWN
        for s in range(until - count + 1, until + 1)
    ]
    found = history.window(NAME, KEY, until, count)
    assert ([UNKNOWN] * count if found is None else list(found)) == expected


def test_a_value_stands_until_the_next_as_long_as_it_may_be_believed() -> None:
    history = History()
    history.add([reading(10, 1, 5.0), reading(13, 2, 5.0), reading(20, 3, 5.0)])
    assert list(history.window(NAME, KEY, 20, 11) or ()) == [1, 1, 1, 2, *[UNKNOWN] * 6, 3]


def test_the_newest_value_up_to_a_time_is_found_and_none_that_is_too_old() -> None:
    history = History()
    history.add([reading(10, 0), reading(12, 7)])
    assert history.at(NAME, KEY, 11.0, 3.0) == 0
    assert history.at(NAME, KEY, 15.0, 3.0) == 7
    assert history.at(NAME, KEY, 16.0, 3.0) is None
    assert history.at(NAME, KEY, 9.0, 3.0) is None


def test_ten_hours_take_as_much_memory_as_ten_minutes() -> None:
    import tracemalloc

    def fill(history: History, seconds: range) -> int:
        tracemalloc.start()
        for at_s in seconds:
            history.add(
                [Reading(NAME, DeviceKey(None, i), 5.5, at_s, "agent", 5.0) for i in range(4)]
            )
            history.forget(at_s)
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return taken

    history = History()
    fill(history, range(600))
    assert fill(history, range(600, 36_000)) < 20_000


def rows(server: str, ids: range, at_s: float, fresh_s: float = 5.0) -> list[Reading]:
    metrics = ("hbm_used_bytes", "duty_cycle_percent", "idle_s")
    return [
        Reading(m, DeviceKey(None, i, server), 1.0, at_s, "libtpu", fresh_s)
        for m in metrics
        for i in ids
    ]


def test_a_server_that_names_its_devices_anew_at_each_look_pushes_nothing_out() -> None:
    history = History()
    mine, slow = range(256), range(1000, 1256)
    for second in range(120):
        history.add(rows("localhost:8432", mine, second))
        if second % 30 == 0:
            history.add(rows("localhost:8433", slow, second, 90.0))
        history.add(rows("localhost:8431", range(second * 1024, second * 1024 + 1024), second))
        history.forget(second)
        assert history.size <= SERIES_MOST
    for i in (*mine, *slow):
        server = "localhost:8432" if i < 256 else "localhost:8433"
        for metric in ("hbm_used_bytes", "duty_cycle_percent", "idle_s"):
            found = history.window(metric, DeviceKey(None, i, server), 119, 120)
            assert found is not None
            assert list(found[:90]) == [1.0] * 90
    assert history.nothing_since_s(DeviceKey(None, 0, "localhost:8431")) is None


def test_a_job_that_comes_later_finds_room_beside_a_server_that_takes_it_all() -> None:
    history = History()
    for second in range(60):
        history.add(rows("localhost:8431", range(second * 1024, second * 1024 + 1024), second))
        history.forget(second)
        if second >= 30:
            history.add(rows("localhost:8432", range(256), second))
    found = history.window("idle_s", DeviceKey(None, 255, "localhost:8432"), 59, 30)
    assert list(found or ()) == [1.0] * 30


def test_ever_new_processes_push_out_none_that_is_still_there() -> None:
    history, mine = History(), ProcessKey(1, 1)
    for second in range(100):
        keys = [(mine, 8), *((ProcessKey(1000 * second + n, 7), 16) for n in range(64))]
        for key, devices in keys:
            history.add(
                [
                    Reading("hbm_used_bytes", DeviceKey(key, i), 1.0, second, "agent", 259_200.0)
                    for i in range(devices)
                ]
            )
        history.forget(second)
        assert history.size <= SERIES_MOST
    for i in range(8):
        assert list(history.window(NAME, DeviceKey(mine, i), 99, 100) or ()) == [1.0] * 100
    later = ProcessKey(2, 2)
    for second in range(100, 200):
        history.add([Reading(NAME, DeviceKey(later, 0), 1.0, second, "agent", 5.0)])
        history.forget(second)
    assert history.at(NAME, DeviceKey(later, 0), 199.0, 5.0) == 1


def test_a_host_of_256_chips_with_an_agent_and_a_metrics_server_has_a_place_for_everything() -> (
    None
):
    history, job = History(), ProcessKey(1, 1)
    subjects = [DeviceKey(job, i) for i in range(256)]
    sources = ("agent", "libtpu", "libtpu_sdk")
    metrics = [m.name for m in METRICS if m.scope == "device" and m.name not in UNKEPT]
    for second in range(3):
        for subject in subjects:
            history.add(
                [Reading(m, subject, 1.0, second, x, 5.0) for m in metrics[:12] for x in sources]
            )
        history.forget(second)
    asked = len({*ASKED_OF_LIBTPU} & {*metrics[:12]})
    assert history.size == 256 * (3 * 12 - asked)


def test_the_history_is_never_larger_than_it_says() -> None:
    import tracemalloc

    history = History()
    tracemalloc.start()
    for second in range(12):
        history.add(rows("localhost:8431", range(second * 4096, second * 4096 + 4096), second))
        history.add(
            [r for n in range(64) for r in rows(f"x{n}", range(second, second + 32), second)]
        )
        history.forget(second)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 64_000_000


def test_values_of_ten_minutes_apart_take_no_longer_than_those_of_a_second() -> None:
    history = History()
    with takes_at_most(1.0):  # 0.1 s
        for n in range(20_000):
            history.add([reading(600.0 * n, 1.0, 1e6)])


def test_a_history_is_read_and_forgets_while_a_source_adds_to_it() -> None:
    history, done, every_s = History(span_s=1), threading.Event(), sys.getswitchinterval()

    def add() -> None:
        n = 0
        while not done.is_set():
            n += 1
            history.add([Reading(NAME, DeviceKey(None, n % 5000), 1.0, float(n), "agent", 5.0)])

    source = threading.Thread(target=add)
    sys.setswitchinterval(1e-6)
    try:
        source.start()
        for tick in range(3000):
            history.oldest_s()
            if tick % 50 == 0:
                history.forget(1e6 * tick)
    finally:
        done.set()
        source.join(60)
        sys.setswitchinterval(every_s)
    assert not source.is_alive()


JOB = ProcessKey(1, 1)


def resting(key: DeviceKey, at_s: float) -> Reading:
    return Reading("duty_cycle_percent", key, 0.0, at_s, "agent", 5.0)


def record(history: History, key: DeviceKey, owners: tuple[ProcessKey, ...], at_s: float) -> None:
    shown = {(key, "duty_cycle_percent"): resting(key, at_s)}
    history.record(shown, {0: key}, {key: owners} if owners else {}, at_s)


def test_the_rest_that_a_jobs_agent_recorded_before_the_first_look_is_its_own() -> None:
    history, device = History(), DeviceKey(JOB, 0)
    history.add([resting(device, float(at_s)) for at_s in range(100, 400)])
    record(history, device, (JOB,), 400.0)
    assert history.nothing_since_s(device) == 100.0
    record(history, device, (JOB, ProcessKey(2, 2)), 401.0)
    assert history.nothing_since_s(device) == 401.0


def test_a_job_that_comes_to_a_chip_that_was_free_begins_its_rest_anew() -> None:
    history, device = History(), DeviceKey(JOB, 0)
    record(history, DeviceKey(None, 0), (), 100.0)
    record(history, device, (JOB,), 101.0)
    assert history.nothing_since_s(device) == 101.0


def test_a_source_adds_the_past_of_jobs_while_a_snapshot_is_recorded() -> None:
    history, done, every_s = History(), threading.Event(), sys.getswitchinterval()

    def add() -> None:
        for n in range(8_000):
            history.add([resting(DeviceKey(ProcessKey(n, n), 0), 1.0)])
        done.set()

    source = threading.Thread(target=add)
    sys.setswitchinterval(1e-6)
    try:
        source.start()
        while not done.is_set():
            record(history, KEY, (), 2.0)
    finally:
        sys.setswitchinterval(every_s)
        source.join(60)
    assert not source.is_alive()


def test_devices_that_change_their_keys_at_each_look_cost_no_memory_and_little_time() -> None:
    """A metrics server that names its devices anew, and a job whose agent comes and goes."""
    history = History()
    with takes_at_most(10.0):  # 0.5 s
        for second in range(60):
            server, job = f"localhost:{8431 + second % 2}", ProcessKey(1, 1)
            rows = [DeviceKey(None, second * 1024 + i, server) for i in range(1024)]
            own = [DeviceKey(job if second % 2 else None, i) for i in range(256)]
            shown = {
                (d, NAME): Reading(NAME, d, 1.0, float(second), "libtpu", 5.0)
                for d in (*rows, *own)
            }
            places = {**{d[1:]: d for d in rows}, **{d.index: d for d in own}}
            history.record(shown, places, {}, float(second))
            assert history.size <= SERIES_MOST
            assert len(history._places) == len(places)
    for d in own:
        assert list(history.window(NAME, d, 59, 60) or ()) == [1.0] * 60
