"""The hosts of a slice as a torus: places, quantities, marks, links, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from support.fleet_hosts import device, host, notice, process

from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.report.device_marks import DeviceMarks
from tpusmi.fleet.report.fleet_torus import torus_of
from tpusmi.model import Link
from tpusmi.report.quantities import HBM

MXU = "tensorcore_utilization_percent"


def slice_of(count: int, **changes: object) -> list[FleetHost]:
    """Hosts of 2x2 chips in a row along x, with coordinates."""
    return [
        host(
            f"h{n}",
            slice="s",
            topology=f"{2 * count}x2",
            devices=[
                device(c, pid=7, coords=(2 * n + c % 2, c // 2, 0), **{MXU: 10.0 * n + c})
                for c in range(4)
            ],
            links=[Link(c, "ici0", 0) for c in range(4)],
            **changes,
        )
        for n in range(count)
    ]


def text(notes: Sequence[str]) -> str:
    return " ".join(notes)


def test_chips_are_at_their_places_with_the_quantity_of_each() -> None:
    torus = torus_of(slice_of(4), MXU)
    assert torus.size == (8, 2, 1)
    assert len(torus.chips) == 16
    by_place = {c.coords: c for c in torus.chips}
    assert by_place[5, 1, 0].host == "h2"
    assert by_place[5, 1, 0].ratio == 0.23
    assert by_place[5, 1, 0].key == ("h2/s/h2:8781", "3")
    assert len(torus.links) == 7 * 2 + 8
    assert {link.health for link in torus.links} == {0}
    assert torus.title == "slice s: 4 hosts, 4 live"
    assert torus.notes == ("Whether the ends of the axes are joined is not known.",)


def test_ends_of_an_axis_are_joined_where_the_hosts_say_so_and_agree() -> None:
    ring = slice_of(4, wraps=(True, False, False))
    torus = torus_of(ring, MXU)
    assert torus.wraps == (True, False, False)
    assert len(torus.links) == 7 * 2 + 8 + 2
    assert torus.notes == ()
    differing = torus_of([*ring[:2], *slice_of(4, wraps=(True, True, False))[2:]], MXU)
    assert differing.wraps is None
    assert "Whether the ends of the axes are joined" in text(differing.notes)


def test_memory_is_a_share_and_unknown_is_no_number() -> None:
    known = device(0, coords=(0, 0, 0), hbm_used_bytes=1.0, hbm_limit_bytes=4.0)
    shared = device(1, coords=(1, 0, 0), of_chip={"hbm_used_bytes": 3.0, "hbm_limit_bytes": 4.0})
    unknown = device(2, coords=(2, 0, 0), hbm_used_bytes=1.0)
    torus = torus_of([host("a", devices=[known, shared, unknown])], HBM.metric)
    assert [c.ratio for c in torus.chips] == [0.25, 0.75, None]


def test_old_numbers_of_a_host_that_answers_are_old_without_a_mark_as_on_the_heat_map() -> None:
    hosts = slice_of(2)
    hosts[1] = hosts[1]._replace(state=HostState.OLD)
    chips = [c for c in torus_of(hosts, MXU).chips if c.host == "h1"]
    assert {(c.mark, c.is_old) for c in chips} == {("", True)}


def test_a_host_that_is_not_live_is_marked_and_its_quantity_is_old() -> None:
    hosts = slice_of(2)
    hosts[1] = hosts[1]._replace(state=HostState.DOWN, reason="it does not answer")
    torus = torus_of(hosts, MXU)
    down = [c for c in torus.chips if c.host == "h1"]
    assert {(c.mark, c.is_old) for c in down} == {("x", True)}
    assert all(c.ratio is not None for c in down)
    assert "it does not answer" in down[0].facts
    assert "How healthy the links of 4 chips are is not known." in torus.notes


def test_stragglers_and_warnings_are_marked() -> None:
    hosts = [
        h._replace(processes=(process(7, **{"step_time_s.mean": 2.0 if n == 1 else 1.0}),))
        for n, h in enumerate(slice_of(3))
    ]
    hosts[2] = hosts[2]._replace(notices=(notice("throttled", chip=3),))
    marks = {(c.host, c.name): c.mark for c in torus_of(hosts, MXU).chips if c.mark}
    assert marks == {**{("h1", f"tpu:{c}"): "*" for c in range(4)}, ("h2", "tpu:3"): "!"}


def test_a_notice_about_a_process_marks_its_chips_where_it_concerns_them_as_on_the_host() -> None:
    for noticed, marks in (
        (notice("unused", pid=7), "!!!!"),
        (notice("recompiling", pid=7), ""),
        (notice("memory_grows", pid=7, device="2"), "!"),
        (notice("unused", pid=8), ""),
    ):
        one = slice_of(1)[0]._replace(notices=(noticed,))
        torus = torus_of([one], MXU)
        assert "".join(c.mark for c in torus.chips) == marks
        of_one = DeviceMarks(one, one.notices, is_slow=False)
        assert "".join(map(of_one.of, one.devices)) == marks
        assert of_one.of(None) == ""


def test_many_links_and_notices_of_a_stranger_are_looked_through_once() -> None:
    chips = 512
    looks = 0

    class Looked(tuple[Any, ...]):
        """Counts how often it is looked through."""

        def __iter__(self) -> Iterator[Any]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    one = slice_of(1)[0]._replace(
        devices=tuple(device(n, coords=(n % 16, n // 16, 0)) for n in range(chips)),
        links=Looked(Link(n, "ici0", 7) for n in range(chips)),
        notices=Looked((notice("throttled", chip=3),)),
    )
    torus = torus_of([one], MXU)
    assert [c.mark for c in torus.chips].count("!") == 1
    assert looks < 10


def test_a_notice_about_the_slice_marks_none_of_its_chips() -> None:
    hosts = slice_of(4)
    pid = hosts[0].devices[0].pid
    noticed = [h._replace(notices=(notice("slice_silent", pid=pid),)) for h in hosts]
    assert {c.mark for c in torus_of(noticed, HBM.metric).chips} == {""}


def test_a_bad_link_is_between_two_chips_that_both_have_one() -> None:
    hosts = slice_of(1)
    bad = (Link(0, "ici0", 7), Link(1, "ici1", 9), Link(2, "ici0", 0), Link(3, "ici0", 0))
    torus = torus_of([hosts[0]._replace(links=bad)], MXU)
    health = {(link.a, link.b): link.health for link in torus.links}
    assert health.pop(((0, 0, 0), (1, 0, 0))) == 7
    assert {*health.values()} == {0}


def test_without_coordinates_places_follow_from_the_worker_and_the_topology() -> None:
    hosts = [
        h._replace(worker=n, devices=tuple(d._replace(coords=None) for d in h.devices))
        for n, h in enumerate(slice_of(2))
    ]
    torus = torus_of(hosts, MXU)
    assert {c.coords: c.ratio for c in torus.chips} == {
        c.coords: c.ratio for c in torus_of(slice_of(2), MXU).chips
    }
    assert "follow from the topology" in text(torus.notes)


def test_what_has_no_place_is_not_drawn_and_counted() -> None:
    nowhere = host("a", devices=[device(0), device(1)])
    torus = torus_of([*slice_of(1), nowhere, host("b", chips=None)], MXU)
    assert {c.host for c in torus.chips} == {"h0"}
    assert "2 devices have no coordinates" in text(torus.notes)
    assert "1 host has no devices that are known" in text(torus.notes)


def test_two_slices_in_one_torus_say_so() -> None:
    other = [h._replace(name="other", key="other") for h in slice_of(1)]
    torus = torus_of([*slice_of(1), *other], MXU)
    assert {c.host for c in torus.chips} == {"h0"}
    assert "4 devices are not drawn: another device is at the same coordinates" in text(torus.notes)


def test_no_hosts_are_an_empty_torus() -> None:
    torus = torus_of([], MXU)
    assert (torus.chips, torus.links, torus.size) == ((), (), None)


def test_hostile_places_are_not_drawn() -> None:
    far = device(0, coords=(1_000_000, 0, 0))
    torus = torus_of([host("a", topology="9999x9999", devices=[far])], MXU)
    assert torus.chips == ()


def test_bad_links_of_live_hosts_are_named_with_their_chips() -> None:
    hosts = slice_of(3)
    hosts[1] = hosts[1]._replace(links=(Link(0, "tray1.chip0.ici3.int", 7), Link(2, "ici1", 0)))
    hosts[2] = hosts[2]._replace(links=(Link(0, "ici0", 9),), state=HostState.DOWN)
    assert torus_of(slice_of(3), MXU).warnings == ()
    assert torus_of(hosts, MXU).warnings == ("Bad links: h1 tpu:0 ici3 health 7.",)


def test_of_many_chips_with_bad_links_some_are_named() -> None:
    hosts = [h._replace(links=[Link(c, "ici0", 7) for c in range(4)]) for h in slice_of(2)]
    (sentence,) = torus_of(hosts, MXU).warnings
    assert sentence.count("health 7") == 6
    assert sentence.endswith("; 2 more chips.")
    hosts[1] = hosts[1]._replace(links=[Link(c, "ici0", 7) for c in range(3)])
    assert torus_of(hosts, MXU).warnings[0].endswith("; 1 more chip.")


def test_links_that_have_not_been_read_yet_are_not_called_untold() -> None:
    hosts = [h._replace(links=()) for h in slice_of(2)]
    assert "No source tells how healthy the links are" in text(torus_of(hosts, MXU).notes)
    notes = text(torus_of(hosts, MXU, is_partial=True).notes)
    assert "No source" not in notes
    assert "links has not been read yet" in notes
