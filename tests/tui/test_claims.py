"""A process that only a file names: marked, apart from the one that has its number, never ended."""

from __future__ import annotations

import pytest
from support.dashboards import press, shown, text
from support.feeds import Job, ScriptedFeed
from support.holder_feeds import HEALTHY, STALE, ScriptedEnder, armed, holders
from test_kill import KEYS, is_asking
from textual.pilot import Pilot

from tpusmi.model import Notice
from tpusmi.tui.scene import CANNOT_END, NONE_SELECTED

PATH = "/dev/shm/tpusmi-1001/52870-5287000.seg"


class Claim(Job):
    """What a file says of the number of the healthy holder."""

    def __init__(self, pid: int = HEALTHY) -> None:
        super().__init__(pid, "xmrig --coin=monero", 0, 0, user="mallory", phase="idle")
        self.key = self.key._replace(claim=PATH)
        self.fields["warnings"] = (Notice("x", "forged words", pid),)


def line(pilot: Pilot[None], part: str) -> str:
    (found,) = [row for row in text(pilot, "processes").splitlines() if part in row]
    return found


async def choose(pilot: Pilot[None], command: str) -> None:
    """Put the cursor on the process of that command."""
    await press(pilot, *["up"] * 10)
    for _ in range(10):
        if command in text(pilot, "detail").splitlines()[0]:
            return
        await press(pilot, "down")
    raise AssertionError(command)


async def test_a_claim_is_marked_and_is_a_row_beside_the_process() -> None:
    async with armed(holders(Claim()), ScriptedEnder(), size=(160, 45)) as pilot:
        assert line(pilot, "xmrig").split()[:3] == ["?", str(HEALTHY), "mallory"]
        assert "not verified" in line(pilot, "xmrig")
        assert "not verified" not in line(pilot, "serve.py")
        await choose(pilot, "serve.py")
        assert "forged words" not in text(pilot, "detail")
        await choose(pilot, "xmrig")
        assert "forged words" in text(pilot, "detail")
        await press(pilot, "enter")
        assert f"not verified: known only from {PATH}, a file of user mallory" in shown(pilot)
        assert "its TensorCores are busy" not in shown(pilot)


async def test_claims_come_after_the_processes_in_every_order_and_are_no_jobs() -> None:
    async with armed(holders(Claim()), ScriptedEnder(), size=(160, 45)) as pilot:
        for _ in range(8):
            rows = [r for r in text(pilot, "processes").splitlines()[1:] if r.strip()]
            assert "xmrig" in rows[-1]
            await press(pilot, ">")
        head = shown(pilot).splitlines()[0]
        assert "(1 not verified)" in head
        assert f"{len(rows) - 1} jobs" in head


async def test_where_there_is_nothing_to_end_the_key_says_so() -> None:
    ender = ScriptedEnder()
    async with armed(ScriptedFeed(), ender, size=(160, 45)) as pilot:
        await press(pilot, "k")
        assert not is_asking(pilot)
        assert NONE_SELECTED in shown(pilot)


@pytest.mark.parametrize("key", [key for key, _ in KEYS])
@pytest.mark.parametrize("page", ["", "enter"], ids=["main", "job"])
async def test_a_claim_cannot_be_ended_nor_the_process_that_has_its_number(
    key: str, page: str
) -> None:
    ender = ScriptedEnder()
    async with armed(holders(Claim()), ender, size=(160, 45)) as pilot:
        await choose(pilot, "xmrig")
        await press(pilot, *filter(None, [page]), key)
        assert not is_asking(pilot)
        assert CANNOT_END in shown(pilot)
    assert ender.orders == []


async def test_a_process_can_be_ended_whatever_a_file_says_of_its_number() -> None:
    async with armed(holders(Claim()), ScriptedEnder(), size=(160, 45)) as pilot:
        await choose(pilot, "serve.py")
        await press(pilot, "k")
        assert is_asking(pilot)
        dialog = [line.split("│")[-2] for line in shown(pilot).splitlines() if line.count("│") > 1]
        assert any("serve.py" in line for line in dialog)
        assert not any("xmrig" in line for line in dialog)


async def test_of_tagged_processes_a_claim_is_left_out() -> None:
    async with armed(holders(Claim(4242)), ScriptedEnder(), size=(160, 45)) as pilot:
        await choose(pilot, "xmrig")
        await press(pilot, "space")
        await choose(pilot, "serve.py")
        await press(pilot, "space", "k")
        assert is_asking(pilot)
        assert f"End pid {HEALTHY}" in shown(pilot)


async def test_the_cursor_does_not_stay_at_a_claim_that_was_seen_before_the_holders() -> None:
    feed = holders(Claim(4242))
    whole, feed.jobs = feed.jobs, feed.jobs[-1:]
    async with armed(feed, ScriptedEnder(), size=(160, 45)) as pilot:
        assert "xmrig" in text(pilot, "detail").splitlines()[0]
        feed.jobs = whole
        await press(pilot, "r")
        assert f"L {STALE} " in text(pilot, "detail").splitlines()[0]
        await choose(pilot, "xmrig")
        await press(pilot, "r")
        assert "xmrig" in text(pilot, "detail").splitlines()[0]
