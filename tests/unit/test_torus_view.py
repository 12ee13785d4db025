"""The torus below its title: the chip under the cursor is in sight, however small the screen is."""

from __future__ import annotations

import pytest
from support.tori import torus

from tpusmi.report.quantities import OF_TORUS
from tpusmi.tui.draw.look import Look
from tpusmi.tui.topology.torus_view import FOOT_LINES, TorusView

DOWN, RIGHT = (0, 1), (1, 0)


@pytest.mark.parametrize("room", [*range(1, 9), 20])
def test_the_chip_under_the_cursor_is_in_sight(room: int) -> None:
    of, view = torus((4, 8, 2)), TorusView(Look(color=False))
    size = (60, 1 + room + FOOT_LINES)

    def drawn() -> list[str]:
        rows = view.lines(of, "title", OF_TORUS[0], size)
        return ["".join(piece.text for piece in row) for row in rows]

    drawn()
    for move in (*[DOWN] * 12, RIGHT, RIGHT, *[(0, -1)] * 12):
        view.step(*move)
        chip = view.chip
        assert chip is not None
        assert chip.ratio is not None
        visible = drawn()[1 : 1 + room]
        assert any(f" {100 * chip.ratio:.0f} " in f"{line} " for line in visible), visible
