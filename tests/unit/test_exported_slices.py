"""What an exporter says of the slice of a job here: only what no other host's exporter has."""

from __future__ import annotations

from typing import Any

from support.fleet_samples import families_of
from support.slice_feeds import Changes, slice_of_hosts
from support.snapshots import everything

from tpusmi.exporter.of_slices import SILENT_MOST
from tpusmi.model import Snapshot

SILENT = {"age_s": 60.0}


def with_slice(count: int, changes: Changes | None = None, **of_slice: Any) -> Snapshot:
    """A host with a process of a slice of that many."""
    s = everything()
    x = slice_of_hosts(count, s.processes[0].key, s.at_s, changes)
    return s._replace(slices=(x._replace(**of_slice),))


def series(s: Snapshot) -> dict[str, dict[str, float]]:
    """The series of slices: values by what tells them from others of their name."""
    common = ("host", "pid", "job_name", "slice_job", "simulated")
    return {
        family.kind.name.removeprefix("tpusmi_slice_"): {
            " ".join(v for n, v in labels if n not in common): value
            for labels, value in family.samples.items()
        }
        for family in families_of(s).in_order()
        if family.kind.name.startswith("tpusmi_slice_")
    }


def left_out(s: Snapshot) -> float | None:
    (family,) = (f for f in families_of(s).in_order() if f.kind.name == "tpusmi_left_out")
    what = ("what", "silent processes of slices")
    return next((v for labels, v in family.samples.items() if what in labels), None)


def test_a_slice_has_its_processes_by_state_and_its_steps() -> None:
    s = with_slice(4, {2: SILENT, 3: {"step_time_s": 0.5}}, process_count=6)
    assert series(s) == {
        "process_index": {"": 0},
        "expected_processes": {"": 6},
        "processes": {"live": 3, "stopped reporting": 1, "not heard of": 2},
        "silent_seconds": {"2 t1v-n-7b8e-w-2": 60.0},
        "step_time_p50_seconds": {"": 0.241},
        "step_time_max_seconds": {"": 0.5},
        "slowest_process_index": {"": 3},
    }


def test_all_hosts_of_a_job_have_one_label_in_common() -> None:
    (sample,) = (
        labels
        for family in families_of(with_slice(4)).in_order()
        if family.kind.name == "tpusmi_slice_expected_processes"
        for labels in family.samples
    )
    assert dict(sample)["slice_job"] == "4d"
    unknown = families_of(with_slice(4, job=0)).in_order()
    assert not [1 for f in unknown for labels in f.samples if "slice_job" in dict(labels)]


def test_a_slice_that_its_reader_no_longer_reads_has_no_series() -> None:
    s = with_slice(4, {2: SILENT})
    x = s.slices[0]

    def read_before(periods: float) -> Snapshot:
        return s._replace(slices=(x.aged(x.at_s + periods * x.period_s),))

    assert series(read_before(2.5))["processes"]["live"] == 3
    assert series(read_before(3.0)) == {}


def test_silent_hosts_have_a_limit() -> None:
    s = with_slice(40, {n: SILENT for n in range(1, 40)})
    assert len(series(s)["silent_seconds"]) == SILENT_MOST
    assert series(s)["processes"]["stopped reporting"] == 39
    assert left_out(s) == 39 - SILENT_MOST


def test_unknown_steps_have_no_series() -> None:
    s = with_slice(2, {n: {"step_time_s": None} for n in range(2)})
    assert {*series(s)} == {"process_index", "expected_processes", "processes"}


def test_two_jobs_on_one_host_have_series_of_their_own() -> None:
    s = everything()
    a, b = s.processes[:2]
    both = (slice_of_hosts(4, a.key, s.at_s), slice_of_hosts(2, b.key, s.at_s)._replace(job=78))
    families = families_of(s._replace(slices=both))
    assert families.left_out == families_of(s).left_out
    (count,) = (f for f in families.in_order() if f.kind.name == "tpusmi_slice_expected_processes")
    assert sorted(count.samples.values()) == [2, 4]


def test_a_host_without_a_slice_has_none_of_these_series() -> None:
    assert series(everything()) == {}
    assert left_out(everything()) is None


def test_a_hostile_name_is_cleaned_and_cut() -> None:
    s = with_slice(2, {1: {"age_s": 60.0, "name": 'x"\n\x1b[2J' + "y" * 5000}})
    (text,) = series(s)["silent_seconds"]
    assert text.isprintable()
    assert len(text) < 300
