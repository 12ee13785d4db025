"""What the dashboard looks like, as pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import snapshots
from support.feeds import Inline, Job, MomentFeed, ScriptedFeed, many_devices, two_jobs
from textual.pilot import Pilot

from tpusmi.model import DENIED, OK, Notice, Outcome, Value
from tpusmi.tui import Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.feed import Feed

SIZES = [(80, 24), (120, 35), (200, 60)]
Compare = Callable[..., bool]

pytestmark = [
    pytest.mark.usefixtures("pictured"),
    pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x35", "200x60"]),
]


def dashboard(feed: Feed, **options: object) -> Dashboard:
    """The dashboard on a script."""
    return Dashboard(feed, Options(**options), reader=Inline)  # type: ignore[arg-type]


async def settle(pilot: Pilot[None]) -> None:
    """Let the first snapshot arrive and the screen be laid out."""
    for _ in range(3):
        await pilot.pause()


def test_eight_devices_and_two_jobs(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(dashboard(two_jobs()), terminal_size=size, run_before=settle)


@pytest.mark.parametrize("count", [1, 4, 16, 256])
def test_hosts_with_few_and_many_devices(
    snap_compare: Compare, size: tuple[int, int], count: int
) -> None:
    feed = many_devices(count, busy=True, past_s=600)
    assert snap_compare(dashboard(feed), terminal_size=size, run_before=settle)


@pytest.mark.parametrize("keys", ["c", "Hg", "f"], ids=["compact", "heat", "full"])
def test_the_ways_to_show_devices(snap_compare: Compare, size: tuple[int, int], keys: str) -> None:
    async def choose(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("tab", *keys, "down")
        await settle(pilot)

    app = dashboard(many_devices(32, busy=True, past_s=600), theme="colorblind")
    assert snap_compare(app, terminal_size=size, run_before=choose)


def test_values_that_are_old_are_grey_and_say_so(
    snap_compare: Compare, size: tuple[int, int]
) -> None:
    feed = two_jobs(on_chips=True)
    values = feed.snapshot().values.items()
    feed.change(values={key: Value(v.value, v.source, 42.0, True) for key, v in values})
    assert snap_compare(dashboard(feed), terminal_size=size, run_before=settle)


def test_a_look_back(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def back(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("shift+left", "left")
        await settle(pilot)

    assert snap_compare(dashboard(two_jobs()), terminal_size=size, run_before=back)


def test_no_jobs(snap_compare: Compare, size: tuple[int, int]) -> None:
    feed = ScriptedFeed(changes={"sources": (Outcome("segments", OK, "no segments"),)})
    assert snap_compare(dashboard(feed), terminal_size=size, run_before=settle)


def test_one_source_denied(snap_compare: Compare, size: tuple[int, int]) -> None:
    denied = Outcome("sysfs", DENIED, "may not read /sys/bus/pci/devices: run as root to see it")
    feed = two_jobs(changes={"sources": (Outcome("segments", OK, "2 jobs"), denied)})
    assert snap_compare(dashboard(feed), terminal_size=size, run_before=settle)


def test_a_dead_job_and_a_silent_one(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(dashboard(old_jobs()), terminal_size=size, run_before=settle)


def test_a_simulated_host_in_ascii_without_colour(
    snap_compare: Compare, size: tuple[int, int]
) -> None:
    feed = two_jobs(changes={"simulated": True})
    app = dashboard(feed, ascii=True, color=False)
    assert snap_compare(app, terminal_size=size, run_before=settle)


def test_a_machine_whose_chips_have_two_cores(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = dashboard(MomentFeed(snapshots.machine()))
    assert snap_compare(app, terminal_size=size, run_before=settle)


def test_help(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def ask(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("question_mark")
        await settle(pilot)

    assert snap_compare(dashboard(two_jobs()), terminal_size=size, run_before=ask)


def old_jobs() -> ScriptedFeed:
    """A job whose agent fell silent, and one that ended three minutes ago."""
    silent = Job(41234, "python train.py", 0, 4, state="silent", sampled_at_s=99_930.0)
    dead = Job(
        39001, "python old.py", 0, 4, state="dead", phase="ended", sampled_at_s=99_820.0, user="bob"
    )
    feed = ScriptedFeed((silent, dead), past_s=400)
    now = feed.snapshot()
    old = {key: Value(v.value, v.source, 70.0, True) for key, v in now.values.items()}
    message = "the job lives, but its agent has stopped writing"
    feed.change(
        devices=silent.devices(),
        dead_devices=dead.devices(),
        values=old,
        warnings=(Notice("silent_agent", message, 41234),),
    )
    return feed
