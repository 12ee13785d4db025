"""What is measured of a whole chip of two cores: never laid over what one core has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.dashboards import dashboard, press, screen_text, text
from support.feeds import GIB, Job, ScriptedFeed

from tpusmi.merge.past import past
from tpusmi.model import Chip, ChipKey, Device, Number, Snapshot, Subject, Value
from tpusmi.model.several import mean
from tpusmi.report import rows, words
from tpusmi.report.plain_table import table
from tpusmi.tui.draw.graphs import Graphs

USED, LIMIT = "hbm_used_bytes", "hbm_limit_bytes"
DUTY = "duty_cycle_percent"


class Cores(Job):
    """A job on one chip of two cores. Its agent tells of each core, or libtpu of the chip."""

    def __init__(self, pid: int, chip: int, of_chip: bool) -> None:
        super().__init__(pid, "python train.py", 2 * chip, 2)
        self.chip, self.of_chip = chip, of_chip

    def devices(self) -> tuple[Device, ...]:
        return tuple(
            d._replace(kind="TPU v3", chip=self.chip, core_on_chip=i)
            for i, d in enumerate(super().devices())
        )

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        for d in self.devices():
            yield d.key, LIMIT, 16 * GIB
            if not self.of_chip:
                yield d.key, USED, 4 * GIB
                yield d.key, "hbm_peak_bytes", 5 * GIB
        yield ChipKey(self.chip), DUTY, 70.0
        if self.of_chip:
            yield ChipKey(self.chip), USED, 24 * GIB


def cores(*of_chips: bool, past_s: int = 400) -> ScriptedFeed:
    jobs = tuple(Cores(4000 + n, n, of_chip) for n, of_chip in enumerate(of_chips))
    chips = tuple(
        Chip(n, "v3", "TPU v3", (f"0000:00:0{n}.0",), (f"/dev/accel{n}",), 2)
        for n in range(len(of_chips))
    )
    return ScriptedFeed(jobs, past_s=past_s, changes={"chips": chips})


def without(s: Snapshot, subject: Subject, name: str) -> Snapshot:
    return s._replace(values={k: v for k, v in s.values.items() if k != (subject, name)})


def test_memory_of_a_chip_is_shown_once_and_of_what_both_cores_have() -> None:
    s = cores(True).snapshot()
    first, second = (rows.memory(s, d) for d in s.devices)
    assert (first.share, first.peak, first.repeats) == (0.75, None, False)
    assert first.text == words.size_pair(24 * GIB, 32 * GIB)
    assert second.repeats
    printed = table(s)
    assert words.size_pair(24 * GIB, 32 * GIB) in printed
    assert words.size_pair(24 * GIB, 16 * GIB) not in printed


def test_memory_of_a_chip_has_no_limit_where_that_of_one_core_is_unknown() -> None:
    s = cores(True).snapshot()
    first = rows.memory(without(s, s.devices[1].key, LIMIT), s.devices[0])
    assert (first.used is not None, first.limit, first.share) == (True, None, None)


def test_a_limit_of_a_chip_is_not_that_of_its_core() -> None:
    s = cores(False).snapshot()
    d = s.devices[0]
    s = without(s, d.key, LIMIT)
    whole = {**s.values, (ChipKey(0), LIMIT): Value(32 * GIB, "libtpu", 0.0, False)}
    found = rows.memory(s._replace(values=whole), d)
    assert (found.used is not None, found.limit, found.share) == (True, None, None)


def test_a_graph_of_a_chip_goes_on_as_one_of_its_core_when_that_is_measured() -> None:
    """And has nothing of the chip in it."""
    feed = cores(True)
    now, graphs = feed.snapshot(), Graphs(feed.history)
    d = now.devices[0]
    of_chip = graphs.of_device(now, d, USED, 300.0, 10)
    assert of_chip == [24.0 * GIB] * 10
    gone = without(now, ChipKey(0), USED)
    assert graphs.of_device(gone, d, USED, 300.0, 10) == [None] * 10
    own = {**now.values, (d.key, USED): Value(4 * GIB, "agent", 0.0, False)}
    own_now = graphs.of_device(now._replace(values=own), d, USED, 300.0, 10)
    assert own_now == [*[None] * 9, 4.0 * GIB]


def test_the_duty_cycle_of_a_chip_is_drawn_after_it_is_gone_and_never_mixed_with_a_cores() -> None:
    feed = cores(True)
    now, graphs = feed.snapshot(), Graphs(feed.history)
    d = now.devices[0]
    gone = without(now, ChipKey(0), DUTY)
    assert graphs.of_device(gone, d, DUTY, 300.0, 10) == [70.0] * 10
    own = gone._replace(values={**gone.values, (d.key, DUTY): Value(5.0, "agent", 0.0, False)})
    assert graphs.of_device(own, d, DUTY, 300.0, 10) == [*[None] * 9, 5.0]


def test_no_mean_is_of_cores_and_of_chips() -> None:
    feed = cores(False, True)
    now = feed.snapshot()
    assert mean(now, USED, now.devices, of_some=True) == 4 * GIB
    assert Graphs(feed.history).average(now, USED, 300.0, 10) == [4.0 * GIB] * 10
    assert mean(now, DUTY, now.devices, of_some=True) == 70.0
    feed = cores(True, True)
    now = feed.snapshot()
    assert mean(now, USED, now.devices, of_some=True) == 24 * GIB
    assert mean(now, USED, now.devices[:0], of_some=True) is None


async def test_the_graphs_of_a_chip_reach_up_to_what_the_chip_has() -> None:
    async with dashboard(cores(True), size=(160, 40)) as pilot:
        graphs = text(pilot, "graphs")
        assert "mean HBM 24.0 GiB" in graphs
        assert words.size(32 * GIB) in graphs
        assert words.size(16 * GIB) not in graphs
        await press(pilot, "d")
        page = "\n".join(screen_text(pilot))
        assert "75 % of 32.0 GiB" in page
        assert "32.0 GiB│" in page
        assert "16.0 GiB│" not in page


async def test_the_graph_in_a_row_of_a_chip_is_of_what_the_chip_has() -> None:
    def bars(page: str) -> set[str]:
        line = next(line for line in page.splitlines() if "tpu:0" in line)
        return {*line.rstrip()[-10:]}

    async with dashboard(cores(True), size=(160, 40), ascii=True) as pilot:
        of_chip = bars(text(pilot, "devices"))
    job = Cores(1, 0, of_chip=False)
    job.measured = lambda at_s: (  # type: ignore[method-assign]
        (subject, name, 12 * GIB if name == USED else value)
        for subject, name, value in Cores.measured(job, at_s)
    )
    async with dashboard(ScriptedFeed((job,), past_s=400), size=(160, 40), ascii=True) as pilot:
        assert bars(text(pilot, "devices")) == of_chip


@pytest.mark.parametrize("back_s", [30, 200])
def test_memory_of_a_chip_in_the_past_is_of_what_the_chip_has(back_s: float) -> None:
    feed = cores(True)
    now = feed.snapshot()
    then = past(now, feed.history, now.at_s - back_s)
    assert rows.memory(then, then.devices[0]).share == 0.75
