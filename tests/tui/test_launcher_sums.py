"""The tree's launchers show what their processes have together, only where all of it is known."""

from __future__ import annotations

from support.dashboards import dashboard, press, row
from support.feeds import GIB, Job, ScriptedFeed

from tpusmi.model import Life, ProcessKey

OF_PROCESS = (ProcessKey, "hbm_used_bytes")
LIFE = Life("S", 600, 600, 600, 60.0, 1, ancestors=((600, "torchrun train.py"),))


def rank(n: int, **how: object) -> Job:
    return Job(700 + n, f"python train.py {n}", 2 * n, 2, life=LIFE, **how)  # type: ignore[arg-type]


class _Unmeasured(Job):
    """A process of whose memory nothing is known."""

    def measured(self, at_s: float):  # type: ignore[no-untyped-def]
        return iter(())


async def test_a_launcher_shows_the_sum_of_memory_and_the_devices() -> None:
    async with dashboard(ScriptedFeed((rank(0), rank(1))), (160, 40)) as pilot:
        await press(pilot, "t")
        values = pilot.app.scene.snapshot.values  # type: ignore[attr-defined]
        sizes = [v.value for (s, name), v in values.items() if (type(s), name) == OF_PROCESS]
        assert "0-3" in row(pilot, 600)
        assert f"{sum(sizes) / GIB:.1f} GiB" in row(pilot, 600)


async def test_a_sum_with_an_unknown_part_is_not_shown() -> None:
    unknown = _Unmeasured(702, "python train.py 2", 4, 0, life=LIFE)
    async with dashboard(ScriptedFeed((rank(0), unknown)), (160, 40)) as pilot:
        await press(pilot, "t")
        assert "iB" not in row(pilot, 600)
        assert row(pilot, 600).split()[:2] == ["600", "torchrun"]
