"""A library clears all of JAX's monitoring listeners: noticed, told, and counted from there on."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
from support.clocks import Clock, stopped

from tpusmi.agent.activity import COMPILED, LOWERED, MISSED, RECENT_S, WARM_UP_S, Compilations

HOME = "jax._src.monitoring"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return stopped(monkeypatch, "tpusmi.agent.activity.monotonic")


SOURCE = """
_event_duration_secs_listeners = []
def register_event_duration_secs_listener(callback): _event_duration_secs_listeners.append(callback)
def record(event, seconds, **details):
    for callback in _event_duration_secs_listeners: callback(event, seconds, **details)
def clear_event_listeners():
    global _event_duration_secs_listeners
    _event_duration_secs_listeners = []
"""
OF_ALL_NOW = """
def get_event_duration_listeners(): return list(_event_duration_secs_listeners)
def unregister_event_duration_listener(callback):
    assert callback in _event_duration_secs_listeners
    _event_duration_secs_listeners.remove(callback)
"""
HIDDEN = """
class Hidden:
    def __iter__(self): raise RuntimeError("not for you")
_event_duration_secs_listeners, _kept = Hidden(), []
def register_event_duration_secs_listener(callback): _kept.append(callback)
def record(event, seconds):
    for callback in _kept: callback(event, seconds)
"""


def jax_of(monkeypatch: pytest.MonkeyPatch, *source: str) -> Any:
    """The monitoring of such a JAX."""
    home: Any = types.ModuleType(HOME)
    exec("".join(source), home.__dict__)
    monkeypatch.setitem(sys.modules, HOME, home)
    monkeypatch.setitem(sys.modules, "jax.monitoring", home)
    return home


@pytest.fixture(params=[SOURCE, SOURCE + OF_ALL_NOW], ids=["old JAX", "new JAX"])
def monitoring(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return jax_of(monkeypatch, request.param)


def compile_one(monitoring: Any, name: str = "f") -> None:
    monitoring.record(LOWERED, 0.1, fun_name=name)
    monitoring.record(COMPILED, 0.5, fun_name=name)


def test_a_total_that_may_lack_some_is_not_told(monitoring: Any, clock: Clock) -> None:
    counted = Compilations()
    counted.listen()
    compile_one(monitoring)
    assert (counted.total, counted.total_s, counted.notes) == (1, 0.5, {})
    monitoring.clear_event_listeners()
    compile_one(monitoring)  # nobody hears this one
    counted.listen()
    compile_one(monitoring)
    assert (counted.total, counted.total_s) == (None, None)
    assert "cleared JAX's monitoring listeners" in counted.notes[MISSED]


def test_compilations_of_the_last_minute_are_known_again_a_minute_later(
    monitoring: Any, clock: Clock
) -> None:
    counted = Compilations()
    counted.listen()
    compile_one(monitoring)
    clock.now_s += WARM_UP_S + 1
    monitoring.clear_event_listeners()
    counted.listen()
    compile_one(monitoring, "train_step")
    assert counted.recent_count(clock.now_s) is None
    clock.now_s += RECENT_S
    compile_one(monitoring, "train_step")
    assert counted.recent_count(clock.now_s) == len(counted.recent(clock.now_s)) > 0
    assert "train_step" in counted.recent(clock.now_s)


def test_a_compilation_whose_end_was_missed_is_not_going_on(monitoring: Any, clock: Clock) -> None:
    counted = Compilations()
    counted.listen()
    monitoring.record(LOWERED, 0.1)
    monitoring.clear_event_listeners()
    counted.listen()
    assert not counted.is_compiling(clock.now_s + 5, None)


def test_listening_again_and_again_counts_each_compilation_once(
    monitoring: Any, clock: Clock
) -> None:
    counted = Compilations()
    for _ in range(5):
        counted.listen()
    compile_one(monitoring)
    assert counted.total == 1
    for _ in range(3):
        monitoring.clear_event_listeners()
        counted.listen()
        counted.listen()
    assert len(monitoring._event_duration_secs_listeners) == 1


def test_the_end_after_a_clearing_raises_nothing_and_leaves_no_listener(
    monitoring: Any, clock: Clock
) -> None:
    counted = Compilations()
    counted.listen()
    monitoring.clear_event_listeners()
    counted.close()
    assert not counted.listen()
    assert monitoring._event_duration_secs_listeners == []


@pytest.mark.parametrize("error", [AssertionError, ValueError, KeyError, RuntimeError])
def test_no_way_of_jax_to_refuse_unregistering_is_raised(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, error: type[Exception]
) -> None:
    monitoring = jax_of(monkeypatch, SOURCE)

    def refuse(callback: object) -> None:
        raise error

    monitoring.unregister_event_duration_listener = refuse
    counted = Compilations()
    counted.listen()
    counted.close()
    compile_one(monitoring)
    assert counted.count == 0


def test_a_jax_that_hides_its_listeners_is_believed(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monitoring = jax_of(monkeypatch, HIDDEN)
    counted = Compilations()
    for _ in range(3):
        counted.listen()
    monitoring.record(COMPILED, 0.5)
    assert counted.total == 1


WRAPPED = """
from functools import wraps
_register = register_event_duration_secs_listener
@wraps(_register)
def register_event_duration_secs_listener(callback):
    _register(lambda *words, **details: callback(*words, **details))
"""


def test_a_listener_that_a_library_has_wrapped_is_registered_once(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    wrapped = jax_of(monkeypatch, SOURCE, WRAPPED)
    counted = Compilations()
    for _ in range(5):
        assert counted.listen()
    wrapped.record(COMPILED, 0.5)
    assert (counted.count, counted.total) == (1, 1)
