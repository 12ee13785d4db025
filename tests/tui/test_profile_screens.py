"""What the question, a capture under way and the page of a profile look like, as characters and
styles.
"""

from __future__ import annotations

from collections.abc import Callable

from support import capturers, profiles
from support.dashboards import text, until
from support.feeds import two_jobs
from support.screens import AT_EVERY_SIZE, GoldenScreen, Size
from textual.pilot import Pilot

from tpusmi.model import Host
from tpusmi.tui.capturing.shown_captures import ShownCaptures

pytestmark = AT_EVERY_SIZE
HOST = Host()
CAPTURE = ("P", "P", "enter")


def _captures(pilot: Pilot[None]) -> ShownCaptures:
    found: ShownCaptures = pilot.app.scene.captures
    return found


def _done(age_s: float) -> Callable[[Pilot[None]], object]:
    """The capture has ended that long ago; the one before it a minute earlier."""

    async def wait(pilot: Pilot[None]) -> None:
        captures = _captures(pilot)
        await until(pilot, lambda: captures.running is None)
        newest, before = captures.newest(captures.shown), captures.before(captures.shown)
        assert newest is not None
        captures.clock = lambda: newest.at_s + age_s
        if before is not None:
            kept = captures._kept[captures.shown]  # type: ignore[index]
            captures._kept[captures.shown] = (  # type: ignore[index]
                before._replace(at_s=newest.at_s - 60),
                *kept[1:],
            )
        pilot.app.page.draw()

    return wait


async def test_the_question(golden_screen: GoldenScreen, size: Size) -> None:
    await golden_screen(two_jobs(), size, "P", host=HOST)


async def test_the_question_in_ascii_without_color(golden_screen: GoldenScreen, size: Size) -> None:
    how = {"host": HOST, "ascii": True, "color": False}
    await golden_screen(two_jobs(changes={"simulated": True}), size, "P", "2", **how)


async def test_a_capture_under_way(golden_screen: GoldenScreen, size: Size) -> None:
    async def wait(pilot: Pilot[None]) -> None:
        captures = _captures(pilot)
        await until(pilot, lambda: "waiting for the trace" in text(pilot, "profile"))
        assert captures.running is not None
        began_s = captures.running.began_s
        captures.clock = lambda: began_s + 3
        pilot.app.page.draw()

    how = {"host": HOST, "capturer": capturers.waiting()}
    await golden_screen(two_jobs(), size, *CAPTURE, wait, **how)


async def test_a_training_job(golden_screen: GoldenScreen, size: Size) -> None:
    how = {"host": HOST, "capturer": capturers.printing(profiles.v5p_training)}
    await golden_screen(two_jobs(), size, *CAPTURE, _done(40), **how)  # type: ignore[arg-type]


async def test_the_end_of_the_page_in_ascii(golden_screen: GoldenScreen, size: Size) -> None:
    how = {"host": HOST, "capturer": capturers.printing(profiles.v5p_training), "ascii": True}
    steps = (*CAPTURE, _done(400), "end")
    await golden_screen(two_jobs(), size, *steps, **how)  # type: ignore[arg-type]


async def test_the_comparison_with_the_profile_before(
    golden_screen: GoldenScreen, size: Size
) -> None:
    how = {"host": HOST, "capturer": capturers.printing(profiles.input_bound)}
    steps = (*CAPTURE, _done(0), *CAPTURE, _done(5), "c")
    await golden_screen(two_jobs(), size, *steps, **how)  # type: ignore[arg-type]


async def test_a_capture_that_failed(golden_screen: GoldenScreen, size: Size) -> None:
    async def wait(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: _captures(pilot).running is None)

    sentence = "pid 41234 does not answer: its agent was started with TPUSMI_PROFILE=0"
    how = {"host": HOST, "capturer": capturers.failing(sentence)}
    await golden_screen(two_jobs(), size, *CAPTURE, wait, **how)
