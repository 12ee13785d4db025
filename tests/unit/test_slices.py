"""Which slices a snapshot shows, in which order, and what is wrong in one."""

from __future__ import annotations

import pytest
from support.clocks import takes_at_most
from support.slice_feeds import Changes, slice_of_hosts

from tpusmi.merge.slice_notices import of_slice, stragglers
from tpusmi.merge.slices import SLICES_MOST, slices
from tpusmi.model import Process, ProcessKey, State
from tpusmi.model.slice_hosts import Slice


def process(pid: int, claim: str = "", **more: object) -> Process:
    return Process(key=ProcessKey(pid, 1, claim), user="ann", command="python", uid=7)._replace(
        **more
    )


def of(p: Process, job: int = 1, count: int = 4, at_s: float = 10.0) -> Slice:
    return Slice(
        process=p.key,
        process_index=0,
        process_count=count,
        job=job,
        period_s=2.0,
        at_s=at_s,
        hosts=(),
    )


def pids(*reported: Slice, processes: list[Process]) -> list[int | None]:
    return [x.pid for x in slices(reported, processes, 11.0)]


def test_a_job_with_two_readers_is_shown_once_and_by_the_same_at_each_look() -> None:
    first, second = process(1), process(2)
    for at_s in ((10.0, 9.0), (9.0, 10.0), (9.0, 9.0)):
        read = of(first, at_s=at_s[0]), of(second, at_s=at_s[1])._replace(process_index=1)
        for reported in (read, read[::-1]):
            assert pids(*reported, processes=[first, second]) == [1]


def test_a_reader_that_reads_no_longer_gives_way_to_another() -> None:
    first, second = process(1), process(2)
    stopped, other = of(first, at_s=7.9), of(second, at_s=8.1)._replace(process_index=1)
    assert pids(stopped, other, processes=[first, second]) == [2]
    both_late = stopped._replace(at_s=2.0), other._replace(at_s=1.0)
    assert pids(*both_late, processes=[first, second]) == [1]


def test_the_job_on_the_tpu_comes_first() -> None:
    large, holder = process(1), process(2, holds=("/dev/vfio/0",))
    reported = [of(large, job=1, count=4000), of(holder, job=2, count=2)]
    assert pids(*reported, processes=[large, holder]) == [2, 1]


def test_no_slice_of_a_claim_or_of_an_ended_process() -> None:
    claim, dead, stranger = process(1, "/x.seg"), process(2, state=State.DEAD), process(3)
    reported = [of(claim, job=1), of(dead, job=2), of(stranger, job=3)]
    assert pids(*reported, processes=[claim, dead]) == []


def test_another_user_cannot_take_the_place_of_a_job() -> None:
    mine, theirs = process(1), process(2)._replace(uid=8)
    reported = [of(mine, at_s=1.0), of(theirs, at_s=9.0)]
    assert sorted(map(str, pids(*reported, processes=[mine, theirs]))) == ["1", "2"]


def test_very_many_slices_are_not_shown() -> None:
    processes = [process(i) for i in range(1, 50)]
    reported = [of(p, job=p.pid) for p in processes]
    assert len(pids(*reported, processes=processes)) == SLICES_MOST


# What is wrong in one.

KEY = ProcessKey(4, 5)


def messages(changes: Changes, hosts: int = 8) -> list[str]:
    return [n.message for n in of_slice(slice_of_hosts(hosts, KEY, 10.0, changes))]


def test_where_all_hosts_are_alike_there_is_nothing_to_say() -> None:
    assert messages({}) == []


def test_hosts_that_are_not_heard_of_are_named() -> None:
    (text,) = messages({i: {"age_s": 12.0} for i in (1, 4, 5, 6, 7)})
    assert text == (
        "5 hosts of 8 have stopped reporting: t1v-n-7b8e-w-1 (process 1), "
        "t1v-n-7b8e-w-4 (process 4), t1v-n-7b8e-w-5 (process 5), 2 more"
    )


def test_a_host_without_a_name_has_the_number_of_its_process() -> None:
    (text,) = messages({1: {"age_s": 12.0, "name": ""}, 4: {"age_s": 12.0}})
    assert text.endswith("have stopped reporting: process 1, t1v-n-7b8e-w-4 (process 4)")


def test_the_slowest_host_is_named_with_its_step_time() -> None:
    (text,) = messages({2: {"step_time_s": 0.5}, 3: {"step_time_s": 0.31}})
    assert text == (
        "slow steps (usually 246 ms): t1v-n-7b8e-w-2 (process 2) 500 ms, "
        "t1v-n-7b8e-w-3 (process 3) 310 ms"
    )


def test_two_hosts_say_nothing_about_which_of_them_is_slow() -> None:
    assert messages({1: {"step_time_s": 0.5, "used": 15}}, hosts=2) == []


def test_a_host_that_is_behind_is_named() -> None:
    (text,) = messages({6: {"steps": 120_000}})
    assert text.startswith("behind the other hosts: t1v-n-7b8e-w-6 (process 6) ")


def test_a_report_that_is_late_makes_no_host_slow() -> None:
    # A report of 5 seconds ago has 20 steps less, and so has that of a period of 100 s.
    assert messages({6: {"steps": 120_380, "age_s": 5.0}}) == []
    old = {"period_s": 100.0, "age_s": 90.0, "steps": 120_400 - 375}
    assert messages({6: old}) == []


def test_a_host_that_counts_no_steps_is_not_behind() -> None:
    assert messages({6: {"steps": None, "step_time_s": None}}) == []


def test_the_host_with_most_memory_in_use_is_named() -> None:
    (text,) = messages({6: {"used": 15}})
    assert text == "more memory in use than the usual 52 %: t1v-n-7b8e-w-6 (process 6) 96 %"


@pytest.mark.parametrize(("seconds", "words"), [(75.0, "1m15s ahead"), (-12.4, "12s behind")])
def test_a_clock_that_differs_is_named(seconds: float, words: str) -> None:
    (text,) = messages({6: {"clock_difference_s": seconds}})
    assert text == f"another time than on this host: t1v-n-7b8e-w-6 (process 6) {words}"


def test_where_all_others_agree_the_clock_of_this_host_is_named() -> None:
    others = {n: {"clock_difference_s": -500.0 + n / 10} for n in range(1, 8)}
    (text,) = messages(others)
    assert text == "another time than on most hosts: t1v-n-7b8e-w-0 (process 0) 8m19s ahead"
    (text,) = messages({1: others[1]}, hosts=2)
    assert text.startswith("another time than on this host: t1v-n-7b8e-w-1 (process 1) ")


def test_a_host_that_is_silent_is_not_judged_by_what_it_said() -> None:
    changes = {6: {"age_s": 60.0, "step_time_s": 9.0, "used": 15, "clock_difference_s": 99.0}}
    assert len(messages(changes)) == 1


def test_a_slice_that_is_no_longer_read_is_not_judged_by_what_was_read() -> None:
    slow: Changes = {3: {"step_time_s": 9.0, "clock_difference_s": 75.0}, 2: {"age_s": 60.0}}
    whole = slice_of_hosts(6, KEY, 10.0, slow)
    assert {n.code for n in of_slice(whole)} == {"slice_silent", "slice_straggler", "slice_clock"}
    assert stragglers(whole) == {3}
    later = whole.aged(100.0)
    assert {n.code for n in of_slice(later)} == {"slice_silent"}
    assert stragglers(later) == set()


def test_a_thousand_hosts_take_little_time() -> None:
    whole = slice_of_hosts(1000, KEY, 10.0)
    with takes_at_most(0.5):  # 0.02 s on a machine that has time
        [*of_slice(whole.aged(11.0))]
