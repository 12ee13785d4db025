"""The ring of the last ten minutes, against a plain list of all readings."""

from __future__ import annotations

import sys
import threading

from hypothesis import given
from hypothesis import strategies as st

from tpusmi.model import UNKNOWN, DeviceKey, History, Reading

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
        source.join(10)
        sys.setswitchinterval(every_s)
    assert not source.is_alive()
