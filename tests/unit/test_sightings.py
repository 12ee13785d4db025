"""Since when a viewer has seen a notice."""

from __future__ import annotations

from tpusmi.merge.sightings import GAP_S, SIGHTINGS_MOST, Sightings
from tpusmi.model import Notice

SLOW = Notice("throttled", "chip 1 is throttled by 10 %", chip=1)


def since(sightings: Sightings, now_s: float, *notices: Notice) -> list[float | None]:
    return [n.since_s for n in sightings.aged(notices, now_s)]


def test_a_notice_has_no_age_at_the_first_sight_and_then_one_that_grows() -> None:
    sightings = Sightings()
    assert since(sightings, 100.0, SLOW) == [None]
    assert since(sightings, 160.0, SLOW) == [60.0]
    assert since(sightings, 161.0, SLOW._replace(message="chip 1 is throttled by 20 %")) == [61.0]


def test_another_chip_and_another_process_have_ages_of_their_own() -> None:
    sightings = Sightings()
    since(sightings, 100.0, SLOW)
    other, of_job = SLOW._replace(chip=2), SLOW._replace(chip=None, pid=7)
    assert since(sightings, 110.0, SLOW, other, of_job) == [10.0, None, None]


def test_of_two_notices_of_one_chip_each_has_its_own_age() -> None:
    a, b = (Notice("ici_link", f"ICI link {name} of chip 1 has faults", chip=1) for name in "ab")
    sightings = Sightings()
    since(sightings, 100.0, a)
    assert since(sightings, 400.0, a, b) == [300.0, None]
    assert since(sightings, 401.0, a, b) == [301.0, 1.0]
    assert since(sightings, 402.0, b) == [2.0]
    assert since(sightings, 420.0, b) == [20.0]
    assert since(sightings, 421.0, b._replace(message="ICI link b has a lasting fault")) == [21.0]


def test_an_age_of_its_own_is_kept() -> None:
    sightings = Sightings()
    unused = Notice("unused", "", 7, since_s=400.0)
    assert since(sightings, 100.0, unused) == [400.0]
    assert since(sightings, 160.0, unused) == [400.0]


def test_a_notice_that_is_gone_for_a_moment_keeps_its_age() -> None:
    sightings = Sightings()
    since(sightings, 100.0, SLOW)
    assert since(sightings, 150.0) == []
    assert since(sightings, 150.0 + GAP_S, SLOW) == [50.0 + GAP_S]


def test_a_notice_that_comes_back_later_is_a_new_one() -> None:
    sightings = Sightings()
    since(sightings, 100.0, SLOW)
    since(sightings, 150.0)
    assert since(sightings, 150.1 + GAP_S, SLOW) == [None]
    assert since(sightings, 160.0, SLOW) == [160.0 - 150.1 - GAP_S]


def test_seldom_looks_are_no_gap() -> None:
    sightings = Sightings()
    since(sightings, 100.0, SLOW)
    assert since(sightings, 700.0, SLOW) == [600.0]


def test_no_number_of_notices_fills_the_memory() -> None:
    sightings = Sightings()
    for now_s in range(5):
        many = [SLOW._replace(pid=1000 * now_s + n) for n in range(SIGHTINGS_MOST)]
        since(sightings, float(now_s), *many)
        assert len(sightings._by_key) <= SIGHTINGS_MOST
