"""Browser tabs: how many each user has, and one dashboard behind each of them.

textual-serve starts the process of a dashboard and speaks its protocol. This module adds what
textual-serve lacks: it closes the tab of a dashboard that died, and ends a dashboard that does not
end when asked.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import NamedTuple

from aiohttp import WSCloseCode, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from tpusmi.web.connections import oldest_of_the_largest

QUIT_S = 5.0
"""How long a dashboard has to end before it is killed."""
KILLED_S = 2.0
CLOSE_S = 2.0
GONE_S = QUIT_S + KILLED_S + 2 * CLOSE_S
"""The longest time until a tab and its dashboard have ended."""


class Size(NamedTuple):
    """The size of a terminal, in cells."""

    columns: int
    lines: int


DEFAULT = Size(80, 24)
LARGEST = Size(1000, 500)
"""A dashboard draws any size, but no browser is larger than this."""


def size_of(columns: object, lines: object) -> Size:
    """The size within the limits; a default if it is not a size."""
    try:
        return Size(
            min(max(int(str(columns)), 1), LARGEST.columns),
            min(max(int(str(lines)), 1), LARGEST.lines),
        )
    except ValueError:
        return DEFAULT


async def show(
    websocket: web.WebSocketResponse, command: str, size: Size, downloads: DownloadManager
) -> str:
    """Run the command behind the tab until one of them ends; then end the other. Returns why the
    dashboard ended, in a sentence, if the tab did not end it; else empty.
    """
    service = AppService(
        command,
        write_bytes=websocket.send_bytes,
        write_str=websocket.send_str,
        close=lambda: close(websocket),
        download_manager=downloads,
    )
    try:
        await service.start(*size)
    except (OSError, RuntimeError) as error:  # no descriptor, process or thread is left
        await close(websocket, WSCloseCode.TRY_AGAIN_LATER)
        return f"no dashboard could be started: {getattr(error, 'strerror', None) or error}"
    listening = asyncio.ensure_future(_listen(websocket, service))
    try:
        assert service._task is not None
        await asyncio.wait({listening, service._task}, return_when=asyncio.FIRST_COMPLETED)
        has_ended = service._task.done()  # the page may disappear at the same moment
    finally:
        listening.cancel()
        await _end(service)
        await close(websocket)
    code = _exit_code(service._process) if has_ended and service._process else None
    if not code:
        return ""
    return f"a dashboard has ended with {f'exit code {code}' if code > 0 else f'signal {-code}'}"


async def close(
    websocket: web.WebSocketResponse, code: WSCloseCode = WSCloseCode.GOING_AWAY
) -> None:
    """Close the connection to a tab, which may have stopped reading."""
    try:
        await asyncio.wait_for(websocket.close(code=code), CLOSE_S)
    except asyncio.TimeoutError:
        pass


async def _listen(websocket: web.WebSocketResponse, service: AppService) -> None:
    """Pass on the page's messages, until it closes or sends an unknown one."""
    async for message in websocket:
        if message.type != WSMsgType.TEXT:
            return
        try:
            command = json.loads(message.data)
        except ValueError:
            return
        if isinstance(command, list) and command[:1] == ["ping"]:
            await websocket.send_json(["pong", *command[1:2]])
        elif not await _pass_on(command, service):
            return


async def _pass_on(command: object, service: AppService) -> bool:
    """False when it is not a command that a page sends."""
    match command:
        case ["stdin", str(keys)]:
            await service.send_bytes(keys.encode("utf-8", "replace"))
        case ["resize", {"width": columns, "height": lines}]:
            await service.set_terminal_size(*size_of(columns, lines))
        case ["focus"]:
            await service.focus()
        case ["blur"]:
            await service.blur()
        case _:
            return False
    return True


def _exit_code(process: asyncio.subprocess.Process) -> int | None:
    """How it ended. Of asyncio and Popen, one waits for it, and the other has no code: asyncio says
    255 then, and Popen 0.
    """
    popen = process._transport.get_extra_info("subprocess")  # type: ignore[attr-defined]
    code = process.returncode
    return code if popen is None or code not in (None, 255) else popen.returncode


async def _end(service: AppService) -> None:
    """Ask the dashboard to quit, and make sure that it ends."""
    process = service._process
    if process is None:
        return

    async def quit_by_itself() -> None:
        # When a dashboard dies at once, textual-serve cancels its task and whatever waits for it.
        await asyncio.wait({asyncio.ensure_future(service.stop())})
        await process.wait()

    # Not wait_for(): it cancels, and textual-serve would believe that the process has ended.
    quitting = asyncio.ensure_future(quit_by_itself())
    try:
        await asyncio.wait({quitting}, timeout=QUIT_S)
    finally:
        if process.returncode is None:  # it hangs, or writes to a page that has stopped reading
            process.kill()
        await asyncio.wait({quitting}, timeout=KILLED_S)


class Seat:
    """The place of one dashboard."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.websocket: web.WebSocketResponse | None = None
        """The connection to the tab, once it is open."""
        self.is_left = asyncio.Event()


class Seats:
    """The seats that are taken, the oldest first. When all are taken, the peer with the most loses
    its oldest to a peer with at least two fewer.
    """

    def __init__(self) -> None:
        self._taken: dict[Seat, str] = {}

    async def take(self, seat: Seat, most: int) -> bool:
        """True once it may start a dashboard; False when all `most` are taken and none is freed."""
        loser = self._loser(seat.peer) if len(self._taken) >= most else None
        if loser is None and len(self._taken) >= most:
            return False
        self._taken[seat] = seat.peer
        if loser is not None and loser.websocket is not None:
            del self._taken[loser]
            await close(loser.websocket)
            await asyncio.wait({asyncio.ensure_future(loser.is_left.wait())}, timeout=GONE_S)
        return True

    def leave(self, seat: Seat) -> None:
        """Free it: its dashboard has ended, or was never started."""
        self._taken.pop(seat, None)
        seat.is_left.set()

    async def close(self) -> None:
        """Close every tab."""
        websockets = [seat.websocket for seat in self._taken if seat.websocket is not None]
        await asyncio.gather(*map(close, websockets))

    def _loser(self, newcomer: str) -> Seat | None:
        """The oldest seat of the peer with the most, if it has two more than the newcomer."""
        opened = {seat: peer for seat, peer in self._taken.items() if seat.websocket is not None}
        if not opened:
            return None
        oldest = oldest_of_the_largest(opened)
        counts = Counter(self._taken.values())
        return oldest if counts[oldest.peer] >= counts[newcomer] + 2 else None
