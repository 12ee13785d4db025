"""The job page: what each key does, and what it says of jobs of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.dashboards import dashboard, press, screen_text, settle, shown, text, until
from support.feeds import ScriptedFeed, two_jobs
from support.holder_feeds import ScriptedEnder, holders
from support.job_feeds import (
    OTHER,
    PID,
    Bare,
    StoryFeed,
    StoryJob,
    old_jobs,
    on_cpu,
    recompiling,
    story,
)
from textual.pilot import Pilot

from tpusmi.model import Notice, Number, Subject

STEP_PARTS = ("min", "mean", "p50", "p95", "max")
NO_STEPS = {
    **dict.fromkeys(("steps", "steps_per_s", "since_last_step_s", "mfu_percent", "flops_per_s")),
    **dict.fromkeys(f"step_time_s.{part}" for part in STEP_PARTS),
}


class Dispatching(StoryJob):
    """A job whose body of a step only dispatches."""

    def measured(self, at_s: float) -> Iterator[tuple[Subject, str, Number]]:
        """The body of its steps as well."""
        yield from super().measured(at_s)
        yield self.key, "step_body_s.mean", 0.00016
        yield self.key, "step_body_s.p95", 0.0012


def page(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one("#job").text()  # type: ignore[attr-defined,no-any-return]


def line(pilot: Pilot[None], start: str) -> str:
    return next(row for row in page(pilot).splitlines() if row.startswith(start))


# -- keys


@pytest.mark.parametrize("key", ["j", "enter"])
async def test_the_p95_step_time_is_one_key_away_at_80_by_24(key: str) -> None:
    async with dashboard(two_jobs(), size=(80, 24)) as pilot:
        await press(pilot, key)
        assert "p95  102 ms" in screen_text(pilot)[3]


@pytest.mark.parametrize(("there", "back"), [("tab", "shift+tab"), ("down", "up")])
async def test_keys_go_to_the_next_process_and_the_one_before(there: str, back: str) -> None:
    async with dashboard(two_jobs(), **ScriptedEnder().options) as pilot:
        await press(pilot, "j")
        assert screen_text(pilot)[1].startswith(f"R {PID}")
        await press(pilot, there)
        assert screen_text(pilot)[1].startswith(f"R {OTHER}")
        assert [p.pid for p in pilot.app.page.targets] == [OTHER]  # type: ignore[attr-defined]
        await press(pilot, there)
        assert screen_text(pilot)[1].startswith(f"R {PID}")
        await press(pilot, back)
        assert screen_text(pilot)[1].startswith(f"R {OTHER}")


async def test_k_asks_about_the_process_of_the_page() -> None:
    async with dashboard(holders(), size=(100, 30), **ScriptedEnder().options) as pilot:
        await press(pilot, "j", "tab", "k")
        assert str(OTHER) in shown(pilot)
        assert "SIGTERM" in shown(pilot)


async def test_escape_goes_back_to_the_main_page() -> None:
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "j", "escape")
        assert "PID" in text(pilot, "processes")
        assert not pilot.app.screen.query("#job")


async def test_w_draws_ten_minutes_then_five_two_and_one() -> None:
    async with dashboard(story(), size=(100, 40)) as pilot:
        await press(pilot, "j")
        for oldest in ("-10m", "-5m", "-2m", "-1m", "-10m"):
            axis = next(row for row in page(pilot).splitlines() if row.endswith("now"))
            assert axis.split()[0] == oldest
            await press(pilot, "w")


async def test_what_does_not_fit_is_scrolled_to_and_nothing_is_lost() -> None:
    async with dashboard(story(), size=(80, 16)) as pilot:
        await press(pilot, "j")
        assert "more lines (PgDn)" in page(pilot).splitlines()[-1]
        seen = set(page(pilot).splitlines()[:-1])
        for _ in range(6):
            await press(pilot, "pagedown")
            seen |= set(page(pilot).splitlines())
        await press(pilot, "home")
        top = page(pilot)
        await press(pilot, "end")
        assert "eval_step" in page(pilot).splitlines()[-1]
        for name in ("step time", "MFU", "compiled", "memory", "started", "variables"):
            assert any(row.startswith(name) for row in seen), name
        await press(pilot, "pageup")
        assert page(pilot) != top
        await press(pilot, *["pageup"] * 6)
        assert page(pilot) == top


async def test_another_process_is_shown_from_its_top() -> None:
    async with dashboard(two_jobs(), size=(80, 16)) as pilot:
        await press(pilot, "j", "end", "tab")
        assert screen_text(pilot)[1].startswith(f"R {OTHER}")


async def test_a_process_that_is_gone_leaves_its_place_to_no_other() -> None:
    feed = two_jobs(tick_s=1.0)
    async with dashboard(feed, **ScriptedEnder().options) as pilot:
        await press(pilot, "j")
        feed.change(processes=(feed.jobs[1].process(feed.at_s),))
        await press(pilot, "r", "k")
        assert page(pilot) == f"pid {PID} is gone."
        assert "SIGTERM" not in shown(pilot)
        await press(pilot, "tab")
        assert screen_text(pilot)[1].startswith(f"R {OTHER}")


async def test_without_any_process_the_page_says_so() -> None:
    async with dashboard(ScriptedFeed()) as pilot:
        await press(pilot, "j", "tab", "w", "pagedown", "end")
        assert page(pilot) == "No process holds or uses the TPU."


# -- what it says


async def test_phases_stand_on_a_line_and_in_shares() -> None:
    async with dashboard(story(), size=(100, 40)) as pilot:
        await press(pilot, "j")
        phases = line(pilot, "   phase").partition("│")[2]
        assert [c for c in phases if c.isalpha()] == list("SCRICR")
        said = "running 80 % · compiling 10 % · starting 5 % · idle 5 % · of 9m21s"
        assert said in page(pilot)


async def test_looking_back_shows_the_values_and_the_phase_of_then() -> None:
    async with dashboard(story(), size=(100, 40)) as pilot:
        await press(pilot, "j")
        now = line(pilot, "step time")
        await press(pilot, *["shift+left"] * 8, *["left"] * 2)  # 8:20 ago: compiling
        assert screen_text(pilot)[1].startswith(f"C {PID}  ada  compiling")
        assert line(pilot, "step time").count("–") == 5
        assert line(pilot, "maybe slow").endswith("it compiles, and takes no step meanwhile")
        assert any(row.endswith("then") for row in page(pilot).splitlines())
        await press(pilot, "n")
        assert line(pilot, "step time") == now


async def test_recompiling_is_a_warning_once_with_the_function_and_what_to_do() -> None:
    async with dashboard(recompiling(), size=(140, 40)) as pilot:
        await press(pilot, "j")
        warning = line(pilot, "! ")
        assert warning.startswith("! 12 compilations in the last minute (train_step): shapes")
        assert "static_argnums" in line(pilot, "what to do")
        assert page(pilot).count("compilations in the last minute") == 1


async def test_a_job_that_is_starved_is_told_why_it_may_be_slow() -> None:
    changes = {"duty_cycle_percent": 21.0, "tensorcore_utilization_percent": 9.0}
    warning = Notice("starved", "steps, but its chips are busy only 21 %", PID)
    feed = story(changes=changes, feed={"changes": {"warnings": (warning,)}})
    async with dashboard(feed, size=(100, 40)) as pilot:
        await press(pilot, "j")
        assert "maybe slow its chips are busy only 21 % of the time" in page(pilot)
        assert "prefetch" in line(pilot, "what to do")
        assert warning.message not in page(pilot)


async def test_a_job_at_which_nobody_needs_to_look_is_not_called_slow() -> None:
    async with dashboard(story(), size=(100, 40)) as pilot:
        await press(pilot, "j")
        assert "maybe slow" not in page(pilot)


async def test_warnings_are_told_whole() -> None:
    told = "the memory profile could not be read: " + "a word " * 40 + "and the last one"
    feed = story(feed={"changes": {"warnings": (Notice("no_memory_profile", told, PID),)}})
    async with dashboard(feed, size=(80, 40)) as pilot:
        await press(pilot, "j")
        assert told in " ".join(page(pilot).split())


async def test_without_an_agent_it_says_how_to_get_one_and_what_the_devices_do() -> None:
    async with dashboard(StoryFeed((Bare(),), past_s=590), size=(100, 30)) as pilot:
        await press(pilot, "j")
        assert screen_text(pilot)[1].startswith(f"? {PID}  ada  no agent  TPU v5 lite 0-3")
        assert "tpusmi.start()" in line(pilot, "agent")
        assert "DUTY  98 %" in line(pilot, "devices")
        for name in ("MXU ", "duty cycle ", "HBM bandwidth "):
            assert line(pilot, name).rstrip().endswith("mean of its devices")
        assert "step time" not in page(pilot)


async def test_a_stale_holder_is_told_with_its_reason() -> None:
    async with dashboard(holders(), size=(120, 30)) as pilot:
        await press(pilot, "j")
        assert line(pilot, "! ").startswith(
            "! stale (orphaned): its launcher, pid 41230, has ended"
        )
        assert "/dev/vfio/0-3" in line(pilot, "holds")
        await press(pilot, "tab")
        assert "not stale: its TensorCores are busy" in page(pilot)
        assert "container 3f6c1f0b9a52 as pid 17" in page(pilot)


async def test_a_silent_job_and_a_dead_one_say_so_and_are_grey() -> None:
    async with dashboard(old_jobs(), size=(100, 30)) as pilot:
        await press(pilot, "j")
        assert "silent: no data from its agent for 1m10s" in screen_text(pilot)[1]
        assert _style_of(pilot, "91.2 ms").dim
        await press(pilot, "tab")
        assert "ended 3m00s ago" in screen_text(pilot)[1]
        assert "before it ended" in line(pilot, "steps")
        assert _style_of(pilot, "91.2 ms").dim


async def test_on_a_cpu_flops_are_shown_and_why_there_is_no_mfu() -> None:
    async with dashboard(on_cpu(), size=(100, 40)) as pilot:
        await press(pilot, "j")
        assert "31.0 GFLOP/s  (no MFU: unknown peak of cpu)" in line(pilot, "FLOP/s")
        assert not any(row.startswith("devices") for row in page(pilot).splitlines())


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        (NO_STEPS, "step time  no step yet", "call tpusmi.step() in the loop, once per step"),
        (NO_STEPS, "MFU", "no step yet: call tpusmi.step() in the loop, once per step"),
        ({"mfu_percent": None, "flops_per_s": None}, "MFU", "unknown: pass tpusmi.step(flops=N)"),
    ],
)
async def test_what_a_job_does_not_tell_is_explained(
    changes: dict[str, None], name: str, said: str
) -> None:
    async with dashboard(story(changes=changes), size=(120, 40)) as pilot:
        await press(pilot, "j")
        assert said in line(pilot, name)


async def test_a_body_is_shown_as_a_part_of_the_time_between_steps() -> None:
    job = Dispatching(changes={"step_time_s.mean": 0.0378})
    async with dashboard(StoryFeed((job,), past_s=590), size=(80, 24)) as pilot:
        await press(pilot, "j")
        said = line(pilot, "step body").split(maxsplit=2)[2]
        assert said.strip() == "mean 160 µs of 37.8 ms · p95 1.20 ms"


async def test_a_loop_without_a_body_has_no_line_for_it() -> None:
    async with dashboard(story(), size=(80, 24)) as pilot:
        await press(pilot, "j")
        assert "step body" not in page(pilot)


async def test_where_only_the_rate_is_known_the_rate_is_drawn() -> None:
    changes = dict.fromkeys(f"step_time_s.{part}" for part in STEP_PARTS)
    async with dashboard(story(changes=changes), size=(100, 40)) as pilot:
        await press(pilot, "j")
        assert any(row.startswith("steps/s") for row in page(pilot).splitlines())


async def test_from_140_columns_on_facts_stand_beside_the_graphs() -> None:
    async with dashboard(story(), size=(139, 45)) as pilot:
        await press(pilot, "j")
        assert "memory" not in line(pilot, "step time  median")
        await pilot.resize_terminal(140, 45)
        await settle(pilot)
        assert "memory" in line(pilot, "step time  median")


async def test_text_from_outside_is_no_markup_and_takes_two_lines_at_most() -> None:
    command = "python [bold red]x[/] " + "--argument=[link]value " * 30
    async with dashboard(story(command=command), size=(80, 24)) as pilot:
        await press(pilot, "j")
        rows = screen_text(pilot)
        assert rows[2].startswith("python [bold red]x[/] --argument=[link]value")
        assert rows[3].rstrip().endswith("…")
        assert rows[4].startswith("step time")


async def test_in_ascii_every_character_is() -> None:
    async with dashboard(recompiling(), size=(100, 60), ascii=True) as pilot:
        await press(pilot, "j")
        assert shown(pilot).isascii()


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (40, 10), (140, 3), (20, 60), (400, 100)])
async def test_any_size_of_screen_will_do(size: tuple[int, int]) -> None:
    async with dashboard(recompiling(), size=size) as pilot:
        await press(pilot, "j", "w", "pagedown", "end", "home", "tab")
        await until(pilot, lambda: len(screen_text(pilot)) == size[1])


def _style_of(pilot: Pilot[None], words: str):  # type: ignore[no-untyped-def]  # rich's Style
    rows = pilot.app.screen.query_one("#job").drawn  # type: ignore[attr-defined]
    return next(piece.style for row in rows for piece in row if words in piece.text)
