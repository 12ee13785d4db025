"""Who has a dashboard. When all are taken, who has the most of them gives one to who has fewer."""

from __future__ import annotations

import asyncio
from collections import Counter

from aiohttp import web

from tpusmi.web import tab
from tpusmi.web.peers import first_of_the_most

GONE_S = tab.QUIT_S + tab.KILLED_S + 2 * tab.CLOSE_S
"""A tab and its dashboard have gone so long after they were told to, at the latest."""


class Seat:
    """One dashboard's."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.websocket: web.WebSocketResponse | None = None
        """The way to the tab, once it is open."""
        self.is_left = asyncio.Event()


class Seats:
    """Those that are taken, the oldest first."""

    def __init__(self) -> None:
        self._taken: dict[Seat, str] = {}

    async def take(self, seat: Seat, most: int) -> bool:
        """True once it may start a dashboard; False when there are enough, and none has to go."""
        yields = self._who_yields(seat.peer) if len(self._taken) >= most else None
        if yields is None and len(self._taken) >= most:
            return False
        self._taken[seat] = seat.peer
        if yields is not None and yields.websocket is not None:
            del self._taken[yields]
            await tab.close(yields.websocket)
            await asyncio.wait({asyncio.ensure_future(yields.is_left.wait())}, timeout=GONE_S)
        return True

    def leave(self, seat: Seat) -> None:
        """Its dashboard has ended, or was never started."""
        self._taken.pop(seat, None)
        seat.is_left.set()

    async def close(self) -> None:
        """Close every tab."""
        open_ones = [seat.websocket for seat in self._taken if seat.websocket is not None]
        await asyncio.gather(*map(tab.close, open_ones))

    def _who_yields(self, newcomer: str) -> Seat | None:
        """The oldest of the peer that has the most, if that is two more than the newcomer has."""
        shown = {seat: peer for seat, peer in self._taken.items() if seat.websocket is not None}
        if not shown:
            return None
        found = first_of_the_most(shown)
        counts = Counter(self._taken.values())
        return found if counts[found.peer] >= counts[newcomer] + 2 else None
