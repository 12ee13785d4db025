"""Writes the pictures of the documentation: the real dashboard on a simulated host.

    python assets/make_screenshots.py [--check] [NAME ...]

The same bytes at every run, so a difference in git is a difference on the screen. With --check it
writes nothing, and fails when a picture is not the one that it would write.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("assets", "tests"))]

from posed import PosedFeed  # noqa: E402
from posed_slice import TroubledSlice  # noqa: E402
from support import capturers  # noqa: E402
from support.dashboards import settle, until  # noqa: E402
from support.feeds import Inline  # noqa: E402
from support.fleets import InlineReader  # noqa: E402
from support.holder_feeds import ScriptedEnder, holders  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from tpusmi.fleet.simulated.simulated_fleet import SimulatedFleet  # noqa: E402
from tpusmi.tui import Options  # noqa: E402
from tpusmi.tui.app import Dashboard  # noqa: E402
from tpusmi.tui.capturing.shown_captures import ShownCaptures  # noqa: E402
from tpusmi.tui.export import self_contained  # noqa: E402
from tpusmi.tui.fleet.fleet_app import FleetDashboard  # noqa: E402
from tpusmi.tui.fleet.fleet_options import FleetOptions  # noqa: E402


class Picture(NamedTuple):
    """One screen: what is on the host, how large the terminal is, and which keys lead there."""

    name: str
    feed: Callable[[], Any]
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (132, 36)
    capturer: tuple[str, ...] | None = None
    """What captures in place of `tpusmi profile`."""


class FleetPicture(NamedTuple):
    """A screen of a simulated fleet."""

    name: str
    fleet: str
    """As after `tpusmi fleet --simulate`."""
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (132, 36)


FLEET_AT_S = 1_800_000_000.0
"""The time that stands still for it."""


CAPTURER = capturers.script(
    """
from support.simulated_profiles import simulated_profile
from tpusmi.trace.figures import CaptureCost
from tpusmi.trace.plain_objects import to_object
p = simulated_profile("v6e-8", "throttle:5", seconds=6.0, processes=2)
cost = CaptureCost(steps_per_s_before=0.64, steps_per_s_during=0.63, steps_per_s_after=0.64)
made = dict(how="agent", target="41234", host="tpu-vm", pid=41234, command="python train.py")
capture = p.capture._replace(asked_s=6.0, took_s=6.21, analyzed_s=0.42, cost=cost, **made)
print(json.dumps(to_object(p._replace(capture=capture))))
"""
)
CAPTURED_AGO_S = 40.0


@lru_cache
def _host() -> PosedFeed:
    return PosedFeed("v5e-8")


@lru_cache
def _slice() -> PosedFeed:
    return PosedFeed("v5e-256", chips=256)


@lru_cache
def _trillium() -> PosedFeed:
    return PosedFeed("v6e-8")


@lru_cache
def _flat_slice() -> TroubledSlice:
    return TroubledSlice("v5e-256")


@lru_cache
def _cubic_slice() -> TroubledSlice:
    return TroubledSlice("v5p-256")


@lru_cache
def _bad_link() -> PosedFeed:
    return PosedFeed("v5e-8", faults=("bad-link:7",))


PICTURES = (
    Picture("dashboard", _host, size=(132, 40)),
    Picture("compact", _host, ("c",), (100, 30)),
    Picture("heat", _slice, ("g",)),
    Picture("slice_heat", _flat_slice, ("S", "H", "down", "right"), (132, 36)),
    Picture("device", _host, ("d",)),
    Picture("memory", _host, ("m", "enter")),
    Picture("job", _host, ("j",)),
    Picture("profile", _trillium, ("P", "P", "enter"), (120, 46), CAPTURER),
    Picture("slice", _cubic_slice, ("S", "o"), (132, 26)),
    Picture("topology-2x4", _bad_link, ("T", "right", "down", "down", "down"), (112, 24)),
    Picture("topology-16x16", _flat_slice, ("T", *["down"] * 4), (112, 44)),
    Picture("topology-4x4x8", _cubic_slice, ("T", "g", "g"), (112, 34)),
    # A stale holder, as a script has it: why it is stale depends on the machine's own init.
    Picture("kill", holders, ("k",), (110, 30)),
    Picture("help", _host, ("question_mark",), (110, 60)),
)


FLEET = "v5e-256,v5p-128*2,v6e-8*8,v5p-64*3"
FLEET_PICTURES = (
    FleetPicture("fleet", FLEET, size=(132, 30)),
    FleetPicture("fleet_heat", FLEET, ("v",), (132, 40)),
    FleetPicture("fleet_host", FLEET, ("enter", "down", "enter"), (132, 40)),
)


async def fleet_screenshot(picture: FleetPicture) -> str:
    """The screen as SVG, once it has come to rest."""
    fleet = SimulatedFleet(picture.fleet, lambda: FLEET_AT_S)
    app = FleetDashboard(fleet, FleetOptions(), reader=InlineReader)
    app.scene.clock = lambda: FLEET_AT_S
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            await pilot.press(*filter(None, [key]))
            await settle(pilot)
        reading = getattr(app.page, "_reading", None)
        if reading is not None:  # of a host, on threads
            await until(pilot, lambda: not reading._asked)
            await settle(pilot)
        return self_contained(app.export_screenshot(title="tpusmi fleet"))


async def screenshot(picture: Picture) -> str:
    """The screen as SVG, once it has come to rest."""
    options = Options(**ScriptedEnder().options, capturer=picture.capturer)  # type: ignore[arg-type]
    app = Dashboard(picture.feed(), options, reader=Inline)
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            await pilot.press(*filter(None, [key]))
            await settle(pilot)
        if app.scene.captures is not None:
            await _captured(app, app.scene.captures, pilot)
        return self_contained(app.export_screenshot(title="tpusmi"))


async def _captured(app: Dashboard, captures: ShownCaptures, pilot: Pilot[None]) -> None:
    """Wait for the capture, and let it be of a fixed age."""
    while captures.running is not None:
        await pilot.pause(0.05)
    newest = captures.newest(captures.shown)
    assert newest is not None, captures.error(captures.shown)
    captures.clock = lambda: newest.at_s + CAPTURED_AGO_S
    app.page.draw()
    await pilot.pause()


def main() -> None:
    """Write the pictures, or compare them."""
    os.environ["TZ"] = "UTC"
    os.environ.pop("NO_COLOR", None)
    time.tzset()
    check, other = "--check" in sys.argv, []
    names = {name for name in sys.argv[1:] if not name.startswith("-")}
    for picture in (p for p in (*PICTURES, *FLEET_PICTURES) if not names or p.name in names):
        path = ROOT / "assets" / f"{picture.name}.svg"
        made = fleet_screenshot if isinstance(picture, FleetPicture) else screenshot
        svg = asyncio.run(made(picture))  # type: ignore[arg-type]
        if not check:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != svg:
            other.append(path.name)
    if other:
        raise SystemExit(f"not what is on the screen: {', '.join(other)}; run this without --check")


if __name__ == "__main__":
    main()
