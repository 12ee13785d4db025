"""The tori of a snapshot: places by agents and by the environment of a job, marks, notes."""

from __future__ import annotations

import pytest
from support.slice_feeds import feed_of_slice, slice_of_hosts

from tpusmi import chips
from tpusmi.model import DeviceKey, ProcessKey, SliceState
from tpusmi.model.slice_hosts import Slice
from tpusmi.model.torus import Torus
from tpusmi.report.torus.chip_places import (
    AXIS_MOST,
    bounds,
    placement,
    sensible,
    size_around,
    sizes_of,
    wraps_of,
)
from tpusmi.report.torus.snapshot_tori import of_snapshot

HBM, DUTY = "hbm_used_bytes", "duty_cycle_percent"
ME = ProcessKey(4321, 100)
V5E = chips.by_name("v5e")


def slice_of(count: int, **changes: object) -> Slice:
    return slice_of_hosts(count, ME, 100.0)._replace(**changes)


def of_slice(x: Slice, metric: str) -> tuple[Torus, ...]:
    """The tori of a slice of which this host knows only what its agents say."""
    s = feed_of_slice().snapshot()
    return of_snapshot(s._replace(devices=(), processes=(), slices=(x,)), metric)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16x16", (16, 16, 1)),
        ("4x4x8", (4, 4, 8)),
        ("2,2,1", (2, 2, 1)),
        ("0x4", None),
        ("4x999", None),
        ("4", None),
        ("4x4x4x4", None),
        ("４x４", None),
        ("4x4\n", (4, 4, 1)),
        ("1" * 10_000, None),
        (None, None),
    ],
)
def test_sizes_are_read_as_launchers_write_them(text: str | None, size: object) -> None:
    assert bounds(text) == size


@pytest.mark.parametrize(
    ("text", "wraps"),
    [
        ("true,true,false", (True, True, False)),
        ("true,false", (True, False, False)),
        ("1,0,1", (True, False, True)),
        ("yes,no", None),
        ("", None),
        ("true," * 1000, None),
    ],
)
def test_joined_ends_are_read_or_unknown(text: str, wraps: object) -> None:
    assert wraps_of({"TPU_TOPOLOGY_WRAP": text}) == wraps


def test_the_second_host_of_a_slice_stands_beside_the_first() -> None:
    at = placement({"TPU_WORKER_ID": "1"}, (4, 4, 1), V5E, 4)
    assert at.places == ((2, 0, 0), (3, 0, 0), (2, 1, 0), (3, 1, 0))
    at = placement({"TPU_WORKER_ID": "5"}, (4, 4, 2), V5E, 4)
    assert at.places[0] == (2, 0, 1)


def test_eight_chips_of_one_host_need_no_worker_number() -> None:
    assert len(placement({}, (2, 4, 1), V5E, 8).places) == 8


@pytest.mark.parametrize(
    ("environment", "size", "local", "word"),
    [
        ({}, None, 4, "TPU_TOPOLOGY is not in the environment"),
        ({"TPU_TOPOLOGY": "many"}, None, 4, "cannot be read"),
        ({}, (4, 4, 1), 4, "TPU_WORKER_ID"),
        ({"TPU_WORKER_ID": "-1"}, (4, 4, 1), 4, "TPU_WORKER_ID"),
        ({"TPU_WORKER_ID": "99"}, (4, 4, 1), 4, "TPU_WORKER_ID"),
        ({"TPU_WORKER_ID": "٣"}, (4, 4, 1), 4, "TPU_WORKER_ID"),
        ({"TPU_WORKER_ID": "0"}, (4, 4, 1), 3, "shape"),
        ({"TPU_WORKER_ID": "0", "TPU_CHIPS_PER_HOST_BOUNDS": "3,1,1"}, (4, 4, 1), 4, "shape"),
        ({}, (2, 1, 1), 4, "fewer"),
    ],
)
def test_a_place_that_is_not_known_is_not_made_up(
    environment: dict[str, str], size: tuple[int, int, int] | None, local: int, word: str
) -> None:
    at = placement(environment, size, V5E, local)
    assert at.places == ()
    assert word in at.reason


def test_bounds_are_the_size_where_the_topology_does_not_fit() -> None:
    environment = {
        "TPU_TOPOLOGY": "2x2",
        "TPU_PROCESS_BOUNDS": "2,2,1",
        "TPU_CHIPS_PER_PROCESS_BOUNDS": "2,1,1",
    }
    sizes = sizes_of(environment)
    assert sizes == ((2, 2, 1), (4, 2, 1))
    assert size_around([(1, 1, 0)], sizes) == (2, 2, 1)
    assert size_around([(3, 1, 0)], sizes) == (4, 2, 1)
    assert size_around([(9, 9, 9)], sizes) is None


@pytest.mark.parametrize("coords", [None, (), (-1, 0), (0, AXIS_MOST), (0, 0, 0, 0)])
def test_coordinates_that_make_no_sense_are_unknown(coords: tuple[int, ...] | None) -> None:
    assert sensible(coords) is None


def test_each_device_of_a_slice_is_a_chip_of_its_host() -> None:
    (torus,) = of_slice(slice_of(4), HBM)
    assert len(torus.chips) == 16
    assert len({chip.coords for chip in torus.chips}) == 16
    assert len({chip.host for chip in torus.chips}) == 4
    assert (torus.chips[0].ratio, torus.chips[0].is_old) == (0.5, False)
    assert all(link.health is None for link in torus.links)
    assert len(torus.links) == 24


def test_silent_slow_and_warned_hosts_have_their_marks_and_old_numbers_say_so() -> None:
    x = slice_of(6)
    hosts = [*x.hosts]
    hosts[1] = hosts[1]._replace(state=SliceState.STOPPED)
    hosts[2] = hosts[2]._replace(step_time_s=9.0)
    hosts[3] = hosts[3]._replace(warnings=("no_memory_profile",))
    (torus,) = of_slice(x._replace(hosts=tuple(hosts)), DUTY)
    marks = {chip.host[-1]: chip.mark for chip in torus.chips}
    assert marks == {"0": "", "1": "x", "2": "*", "3": "!", "4": "", "5": ""}
    silent = [chip for chip in torus.chips if chip.mark == "x"]
    assert all(chip.ratio is not None and chip.is_old for chip in silent)
    assert not any(chip.is_old for chip in torus.chips if chip.mark != "x")
    assert "stopped reporting" in silent[0].facts


def test_an_unknown_quantity_is_never_0() -> None:
    (torus,) = of_slice(slice_of(2), "tensorcore_utilization_percent")
    assert {chip.ratio for chip in torus.chips} == {None}


def test_processes_that_are_not_heard_of_are_counted_in_a_note() -> None:
    (torus,) = of_slice(slice_of(4, process_count=6), HBM)
    assert any(note.startswith("2 processes are not heard of") for note in torus.notes)


def test_the_slices_of_one_job_are_apart() -> None:
    first, second = slice_of(4), slice_of(4)
    later = tuple(h._replace(process_index=h.process_index + 4) for h in second.hosts)
    job = first._replace(hosts=(*first.hosts, *later), process_count=8)
    tori = of_slice(job, HBM)
    assert [len(torus.chips) for torus in tori] == [16, 16]
    assert tori[1].title.endswith("slice 2 of 2")
    assert {chip.key[1] for chip in tori[1].chips} == {4, 5, 6, 7}  # type: ignore[index]
    missing = job._replace(hosts=job.hosts[1:])
    assert [len(torus.chips) for torus in of_slice(missing, HBM)] == [12, 16]


def test_agents_that_say_their_slice_are_not_put_in_order() -> None:
    even = [h._replace(process_index=2 * h.process_index, slice_index=0) for h in slice_of(4).hosts]
    odd = [h._replace(process_index=h.process_index + 1, slice_index=1) for h in even]
    job = slice_of(4)._replace(hosts=(*even, *odd), process_count=8)
    tori = of_slice(job, HBM)
    indexes = [{chip.key[1] for chip in torus.chips} for torus in tori]  # type: ignore[index]
    assert indexes == [{0, 2, 4, 6}, {1, 3, 5, 7}]
    assert not any("in order" in note for torus in tori for note in torus.notes)
    one_does_not = job._replace(hosts=(job.hosts[0]._replace(slice_index=None), *job.hosts[1:]))
    assert any("in order" in note for torus in of_slice(one_does_not, HBM) for note in torus.notes)


def test_devices_without_coordinates_are_counted_and_not_drawn() -> None:
    x = slice_of(2)
    lost = x.hosts[1]._replace(devices=tuple(d._replace(coords=None) for d in x.hosts[1].devices))
    (torus,) = of_slice(x._replace(hosts=(x.hosts[0], lost)), HBM)
    assert len(torus.chips) == 4
    assert any("4 devices have no coordinates" in note for note in torus.notes)


def test_a_snapshot_without_coordinates_says_why_nothing_is_drawn() -> None:
    s = feed_of_slice(4).snapshot()
    bare = s._replace(slices=(), devices=tuple(d._replace(coords=None) for d in s.devices))
    (torus,) = of_snapshot(bare, HBM)
    assert torus.chips == ()
    assert torus.notes


def test_a_host_without_a_tpu_says_so_on_a_page_that_would_be_blank() -> None:
    s = feed_of_slice(8).snapshot()._replace(devices=(), processes=(), slices=())
    (torus,) = of_snapshot(s, HBM)
    assert torus.chips == ()
    assert torus.notes == (
        "No TPU is seen here, and no job of several hosts: there is nothing to draw.",
    )


def test_an_old_value_of_this_host_is_shown_as_old() -> None:
    s = feed_of_slice(4).snapshot()
    placed = tuple(d._replace(coords=(n, 0, 0), platform="tpu") for n, d in enumerate(s.devices))
    old = {key: value._replace(stale=True) for key, value in s.values.items()}
    tori = of_snapshot(s._replace(slices=(), devices=placed, values=old), HBM)
    chips = [c for torus in tori for c in torus.chips if c.ratio is not None]
    assert chips
    assert all(c.is_old and "(old)" in c.facts for c in chips)


def test_devices_of_this_host_can_be_opened() -> None:
    s = feed_of_slice(4).snapshot()
    tori = of_snapshot(s, HBM)
    keys = [chip.key for torus in tori for chip in torus.chips]
    assert len({*keys}) == len(keys)
    can_be_opened = {key for key in keys if isinstance(key, DeviceKey)}
    assert can_be_opened
    assert can_be_opened <= {d.key for d in s.devices}


def test_a_segment_of_another_user_does_not_replace_a_device_of_the_slice() -> None:
    s = feed_of_slice(4).snapshot()
    reader = next(p for p in s.processes if p.key == s.slices[0].process)
    host = s.slices[0].hosts[1]._replace(name=s.slices[0].hosts[0].name)
    x = s.slices[0]._replace(hosts=(s.slices[0].hosts[0], host, *s.slices[0].hosts[2:]))
    facts = {"process_index": 1, "process_count": x.process_count}
    other = next(p for p in s.processes if p.key != reader.key)
    at = {d.coords: d for d in host.devices}
    mine = s.devices_of(other.key)

    def drawn_here(uid: int | None) -> int:
        owner = other._replace(facts=facts, uid=uid)
        coords = dict(zip((d.key for d in mine), at, strict=False))
        devices = tuple(
            d._replace(coords=coords[d.key], core_on_chip=0) if d.key in coords else d
            for d in s.devices
        )
        processes = (reader._replace(uid=1000), owner)
        moment = s._replace(slices=(x,), processes=processes, devices=devices)
        keys = [chip.key for torus in of_snapshot(moment, HBM)[:1] for chip in torus.chips]
        return len({d.key for d in mine} & {*keys})

    assert drawn_here(1000) > 0
    assert drawn_here(2000) == 0
