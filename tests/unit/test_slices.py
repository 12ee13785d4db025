"""Which slices a snapshot shows, and in which order."""

from __future__ import annotations

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


def test_a_job_with_two_readers_is_shown_once_by_the_newer() -> None:
    first, second = process(1), process(2)
    assert pids(of(first, at_s=10.0), of(second, at_s=9.0), processes=[first, second]) == [1]


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
