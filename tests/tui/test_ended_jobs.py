"""Ended jobs on the main page: folded into one line, unfolded and forgotten by keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from support.dashboards import dashboard, press, selected, shown, text, until
from support.feeds import START_S, Job, ScriptedFeed
from support.segments import RUNNING, dead_identity, device, segment, slot

from tpusmi.model import Host, Number
from tpusmi.tui.draw.plot import Curve
from tpusmi.tui.draw.short_graphs import dated

LIVE = Job(7000, "python serve.py", 0, 4)


def dead(pid: int, ago_s: float) -> Job:
    return Job(pid, f"python old{pid}.py", 0, 0, state="dead", sampled_at_s=START_S - ago_s)


def feed(*ago_s: float) -> ScriptedFeed:
    return ScriptedFeed((LIVE, *(dead(8000 + n, ago) for n, ago in enumerate(ago_s))))


async def test_ended_jobs_are_one_line_that_a_key_unfolds() -> None:
    async with dashboard(feed(900.0, 185.0, 400.0), host=Host()) as pilot:
        assert "  3 ended jobs, the last 3m05s ago  X: show  C: clear" in text(pilot, "processes")
        assert "old8000" not in text(pilot, "processes")
        await press(pilot, "X")
        assert "ended jobs" not in text(pilot, "processes")
        assert all(f"old800{n}" in text(pilot, "processes") for n in range(3))
        await press(pilot, "end", "X")
        assert selected(pilot) in ("8000", "8001", "8002")
        assert "2 ended jobs" in text(pilot, "processes")
        await press(pilot, "home")
        assert "3 ended jobs" in text(pilot, "processes")


async def test_a_filter_finds_ended_jobs_and_a_single_one_has_its_row() -> None:
    async with dashboard(feed(900.0, 185.0)) as pilot:
        assert "2 ended jobs, the last 3m05s ago  X: show" in text(pilot, "processes")
        assert "C: clear" not in text(pilot, "processes")
        await press(pilot, "/", *"old8001", "enter")
        assert "python old8001" in text(pilot, "processes")
    async with dashboard(feed(900.0)) as pilot:
        assert "python old8000" in text(pilot, "processes")


async def test_where_all_have_ended_the_last_one_is_chosen() -> None:
    script = feed(900.0, 185.0, 400.0)
    script.jobs = script.jobs[1:]
    async with dashboard(script) as pilot:
        assert selected(pilot) == "8001"
        assert "2 ended jobs, the last 6m40s ago" in text(pilot, "processes")


async def test_the_key_asks_and_then_removes_what_ended_jobs_left(tmp_path: Path) -> None:
    writer = segment(tmp_path, dead_identity())
    writer.append(slot(100.0, RUNNING, [device(), device(1)]))
    writer.close()
    left = Path(writer.path)
    async with dashboard(feed(900.0, 185.0), host=Host(segment_dir=str(tmp_path))) as pilot:
        await press(pilot, "C")
        # As root it removes those of other users as well: these are not root's.
        whose = " of all users" if os.geteuid() == 0 else ""
        question = f"Forget the ended jobs{whose} and remove what they left? y yes"
        assert question in text(pilot, "prompt")
        await press(pilot, "n")
        assert left.exists()
        await press(pilot, "C", "y")
        await until(pilot, lambda: "Forgot 1 ended job" in text(pilot, "footer"))
        assert not left.exists()


async def test_the_answers_to_the_question_fit_on_a_small_screen() -> None:
    async with dashboard(feed(900.0, 185.0), (40, 10), host=Host()) as pilot:
        await press(pilot, "C")
        whose = ", all users" if os.geteuid() == 0 else ""
        assert f"y: forget ended jobs{whose}  n: no" in shown(pilot)


async def test_there_is_no_key_to_forget_where_nothing_may_be_ended(tmp_path: Path) -> None:
    async with dashboard(feed(900.0, 185.0)) as pilot:
        await press(pilot, "C")
        assert "Forget" not in text(pilot, "prompt")
        assert "clear" not in {b.id for b in pilot.app.page.bindings}  # type: ignore[attr-defined]


class _Hanging(Job):
    """A job of 0.1 s steps that has taken none for some seconds."""

    since_s = 18.4

    def _steps(self, at_s: float) -> Iterator[tuple[str, Number]]:
        yield from (pair for pair in super()._steps(at_s) if pair[0] != "since_last_step_s")
        yield "since_last_step_s", self.since_s


async def test_a_job_that_stands_still_says_so_before_its_phase_turns() -> None:
    job = _Hanging(7000, "python serve.py", 0, 4)
    async with dashboard(ScriptedFeed((job,)), size=(140, 35)) as pilot:
        assert "no step for 18s  python serve.py" in text(pilot, "processes")
        assert "no step for 18s" in text(pilot, "detail")
        job.since_s = 4.9
        await press(pilot, "r")
        assert "no step" not in text(pilot, "processes")
        job.since_s, job.fields["phase"] = 60.0, "compiling"
        await press(pilot, "r")
        assert "no step" not in text(pilot, "processes")


async def test_all_values_of_an_ended_job_are_in_parentheses_with_their_units_apart() -> None:
    job = Job(8000, "python old.py", 0, 4, state="dead", sampled_at_s=START_S - 60.0)
    async with dashboard(ScriptedFeed((job,)), size=(160, 35)) as pilot:
        (row,) = (r for r in text(pilot, "processes").splitlines() if "8000" in r)
        assert re.search(r"\(\d+\.\d [GM]iB\) +\(\d+(\.\d+)?\) +\(\d+\.\d ms\)", row), row


def test_a_graph_that_begins_later_than_its_neighbours_says_for_how_long_it_has_data() -> None:
    whole, half = [1.0] * 100, [None] * 50 + [1.0] * 50
    nearly, none = [None] * 3 + [1.0] * 97, [None] * 100
    curves = [Curve("x", "1", values, 1.0, "1") for values in (whole, half, nearly, none)]
    assert [c.remarks for c in dated(curves, 300.0)] == [(), ("for 2m30s",), (), ()]
    assert dated([curves[1]], 300.0) == [curves[1]]


async def test_rows_of_other_users_are_dim_and_root_sees_the_word_in_the_header() -> None:
    jobs = (Job(7000, "python mine.py", 0, 4), Job(7001, "python hers.py", 4, 4, user="grace"))
    for user, dim in (("ada", {"hers"}), ("grace", {"mine"}), ("root", set())):
        async with dashboard(ScriptedFeed(jobs), user=user) as pilot:
            table = pilot.app.page.process_list.table  # type: ignore[attr-defined]
            of = {p.command[7:11]: table.style(p) for p in pilot.app.scene.snapshot.processes}  # type: ignore[attr-defined]
            assert {name for name, style in of.items() if style == "dim"} == dim
            assert (" root " in text(pilot, "header")) == (user == "root")
