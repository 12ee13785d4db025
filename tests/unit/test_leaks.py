"""Memory that only grows is a leak; memory that goes up and comes down again is not."""

from __future__ import annotations

import pytest
from support.clocks import takes_at_most
from support.memory_histories import INNOCENT, LEAKS, MIB, SECONDS, leak, sawtooth
from support.watched_memory import KEY, START_S, USED, Machine, Moment

from tpusmi.merge.growth import WINDOW_S, rate_of, rise_of
from tpusmi.merge.leaks import AMOUNTS_MOST, LINES_MOST, Leaks
from tpusmi.model import (
    Device,
    DeviceKey,
    History,
    MemoryProfile,
    Process,
    ProcessKey,
    Reading,
    Site,
)
from tpusmi.text import per_minute


@pytest.mark.parametrize("name", LEAKS)
def test_each_leak_is_named_within_ten_minutes_with_its_rate(name: str) -> None:
    amount, mib_per_min = LEAKS[name]
    notices = Machine().run(lambda t: {"lines": {"collect": amount(t), "init": 9e9}})
    assert {n.code for n in notices} == {"memory_grows"}
    last = notices[-1]
    assert last.message.startswith("collect (llm/collect.py:7) keeps ")
    rate, unit = last.message.split(" keeps ")[1].split()[:2]
    assert unit == "MiB"
    assert float(rate) == pytest.approx(mib_per_min, rel=0.15)


@pytest.mark.parametrize("name", INNOCENT)
def test_what_is_given_back_or_levels_off_has_no_notice_in_all_the_ten_minutes(name: str) -> None:
    amount = INNOCENT[name]
    assert Machine().run(lambda t: {"lines": {"collect": amount(t), "init": 9e9}}) == []


@pytest.mark.parametrize("name", [*LEAKS, *INNOCENT])
def test_a_devices_memory_is_judged_by_the_same_rules_from_what_its_agent_kept(name: str) -> None:
    amount = (INNOCENT | {key: leak for key, (leak, _) in LEAKS.items()})[name]
    machine = Machine(agent=False)
    machine.history.add(
        Reading(USED, d.key, amount(t), START_S - SECONDS + t, "agent", 5.0)
        for t in range(SECONDS)
        for d in machine.devices
    )
    machine.at = -1
    notices = [n for t in range(60) for n in machine.look(used=amount(SECONDS - 1 + t))]
    if name in INNOCENT:
        assert notices == []
        return
    assert notices[0].message.startswith("memory in use grows by ")
    assert " MiB every minute on 2 devices" in notices[0].message
    assert "tpusmi.start()" in notices[0].advice


def test_the_notice_has_the_line_its_rate_when_the_memory_is_full_and_since_when() -> None:
    amount = leak(96, 4096)
    notices = Machine().run(
        lambda t: {"lines": {"remember": 2 * amount(t)}, "used": amount(t), "live": amount(t)}, 420
    )
    last = notices[-1]
    assert last.message.startswith("remember (llm/remember.py:7) keeps 192 MiB more every minute")
    assert last.message.endswith(": HBM full in 2h01m")
    assert (last.pid, last.device) == (4321, None)
    assert 300 <= (last.since_s or 0) <= 420
    assert last.advice


def test_many_lines_that_grow_a_little_are_one_notice() -> None:
    machine = Machine()
    notices = machine.run(lambda t: {"lines": {f"f{n}": leak(1 + n)(t) for n in range(12)}}, 400)
    assert notices[-1].message.startswith("f11 (llm/f11.py:7) keeps 12.0 MiB more every minute")
    assert "and 11 other lines with it" in notices[-1].message
    assert len(machine.look()) == 1


def test_a_leak_in_no_line_of_its_own_is_told_by_the_live_arrays() -> None:
    """Each line is new, and stays as it is."""

    def of(t: int) -> dict[str, object]:
        return {"lines": {f"f{n}": 5.0 * MIB for n in range(t // 20)}, "live": leak(15)(t)}

    notices = Machine().run(of)
    assert notices[-1].message.startswith("live arrays grow by 30.0 MiB every minute")
    assert "RATE" in notices[-1].advice


def test_growth_that_has_ended_is_no_longer_a_notice_and_comes_back_only_above() -> None:
    """A job that collects for six minutes and gives it back, again and again."""
    amount = sawtooth(360, 3600)
    machine = Machine()
    told = [t for t in range(1200) if machine.look(lines={"collect": amount(t)})]
    assert told
    assert max(told) < 500


def test_a_leak_that_was_mended_is_forgotten_in_some_minutes() -> None:
    machine = Machine()
    for t in range(900):
        notices = machine.look(lines={"collect": leak(100)(min(t, 400))})
        if 340 < t < 400 or t > 700:
            assert bool(notices) == (t < 400)


def test_rates_are_known_after_two_minutes_and_zero_is_not_unknown() -> None:
    machine = Machine()
    seen: list[tuple[float | None, float | None]] = []
    for t in range(300):
        machine.look(lines={"grows": leak(60)(t), "stays": 5.0 * MIB})
        assert machine.snapshot.processes[0].profile is not None
        rates = machine.snapshot.processes[0].profile.rates
        seen.append(
            (
                rates.get(("grows", "/home/ada/llm/grows.py", 7)),
                rates.get(("stays", "/home/ada/llm/stays.py", 7)),
            )
        )
    assert seen[100] == (None, None)
    assert seen[-1] == (pytest.approx(MIB, rel=0.05), 0.0)
    sites = machine.snapshot.to_dict()["processes"][0]["memory_profile"]["sites"]
    assert {s["function"]: s["growth_bytes_per_s"] for s in sites} == {
        "grows": pytest.approx(MIB, rel=0.05),
        "stays": 0.0,
    }


def test_no_notice_is_about_a_claim_or_a_process_that_has_ended() -> None:
    for changes in ({"key": KEY._replace(claim="/dev/shm/x")}, {"state": "dead"}):
        machine = Machine()
        for t in range(400):
            assert machine.look(lines={"f": leak(100)(t)}, used=leak(100)(t), **changes) == ()


def test_a_night_of_sleep_is_not_growth() -> None:
    machine = Machine()
    for t in range(200):
        machine.look(lines={"f": leak(50)(t)})
    machine.at += 30_000
    for t in range(250):
        assert machine.look(lines={"f": leak(50)(t + 9000)}) == ()


def test_hostile_jobs_share_the_room_for_lines_and_leave_others_theirs() -> None:
    leaks, history = Leaks(), History()

    def process(pid: int, uid: int, t: int) -> Process:
        sites = (
            tuple(Site(f"f{t}-{n}", "x.py", n, "buffer", 1000 + n, 1) for n in range(500))
            if uid
            else (Site("grows", "mine.py", 1, "buffer", int(leak(9)(t)), 1),)
        )
        key = ProcessKey(pid, 1)
        return Process(key, "", "", profile=MemoryProfile(START_S + t, sites), uid=uid)

    for t in range(0, 400, 10):
        processes = (process(1, 0, t), *(process(n, 1 + n % 2, t) for n in range(2, 14)))
        leaks.look(Moment(processes, ((), ()), {}, {}), history, START_S + t)
        assert leaks.size <= LINES_MOST
    assert [place[0] for place, _ in leaks.lines_of(process(1, 0, 0))] == ["grows"]


def test_a_user_with_very_many_devices_does_not_hide_the_growth_of_others() -> None:
    def job(pid: int, uid: int, count: int) -> tuple[Process, list[Device]]:
        key = ProcessKey(pid, 1)
        devices = [
            Device(DeviceKey(key, i), i, i, "tpu", None, None, 0, chip=pid, owners=(key,))
            for i in range(count)
        ]
        return Process(key, "", "", uid=uid), devices

    (others, many), (mine, few) = job(1, 1, AMOUNTS_MOST), job(2, 0, 1)
    moment = Moment((others, mine), ((*many, *few), ()), {}, {})
    leaks, history = Leaks(), History()
    for t in (0, 30):
        subjects = [d.key for d in (*many, *few)]
        history.add(Reading(USED, s, MIB, START_S + t, "agent", 5.0) for s in subjects)
        leaks.look(moment, history, START_S + t)
    assert (few[0].key, USED) in leaks._amounts


def test_a_rate_is_a_median_and_needs_two_minutes() -> None:
    assert rate_of([0.0, 1.0, 2.0]) is None
    assert rate_of([20.0 * n for n in range(15)]) == pytest.approx(20.0 / WINDOW_S)
    assert rate_of([5.0] * 14 + [9e9]) == 0.0
    assert rate_of([7.0] * 15) == 0.0
    assert rise_of([float(n * MIB) for n in range(14)]) is None


def test_an_amount_of_a_minute_reads_like_a_size() -> None:
    assert [per_minute(x * MIB / 60) for x in (0, 0.001, 0.1, 9.94, 390.2, 2560)] == [
        "0 MiB", "<0.01 MiB", "0.10 MiB", "9.9 MiB", "390 MiB", "2.5 GiB",
    ]  # fmt: skip


def test_a_thousand_lines_cost_milliseconds() -> None:
    """At most: tests/bench/leaks.py prints that it is less than a thousandth of a core."""
    machine = Machine(8)
    lines = {f"f{n}": (1000.0 - n) * MIB for n in range(1000)}
    for t in range(120):
        if t % 4 == 0:
            machine.process = machine.process._replace(profile=machine.profiled(lines))
        with takes_at_most(0.1):
            machine.look(used=9e9, live=8e9)
    assert len(machine.snapshot.processes[0].profile.rates) == 1000  # type: ignore[union-attr]
