"""One browser tab: what is said between it and the process of its dashboard, and the end of both.

textual-serve starts the process and knows how to talk with it. What it does not do is here: to
close the tab of a dashboard that died, and to end a dashboard that does not end when asked.
"""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

from aiohttp import WSCloseCode, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

QUIT_S = 5.0
"""A dashboard that has not ended so long after it was told to is killed."""
KILLED_S = 2.0
CLOSE_S = 2.0


class Size(NamedTuple):
    """Of a terminal, in cells."""

    columns: int
    lines: int


DEFAULT = Size(80, 24)
LARGEST = Size(1000, 500)
"""A dashboard draws whatever size it is told; a larger one is no browser's."""


def size_of(columns: object, lines: object) -> Size:
    """A size that can be drawn, whatever was asked for."""
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
    """Run the command behind the tab until one of them goes; then end the other. Why the tab has no
    dashboard any more, in a sentence, when that is not its own doing; else empty.
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
        has_ended = service._task.done()  # the page may be gone in the same moment
    finally:
        listening.cancel()
        await _end(service)
        await close(websocket)
    code = service._process.returncode if service._process else None
    return f"a dashboard has ended with {_status(code)}" if has_ended and code else ""


def _status(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {-code}"


async def close(
    websocket: web.WebSocketResponse, code: WSCloseCode = WSCloseCode.GOING_AWAY
) -> None:
    """Close the way to a tab, which may have stopped reading."""
    try:
        await asyncio.wait_for(websocket.close(code=code), CLOSE_S)
    except asyncio.TimeoutError:
        pass


async def _listen(websocket: web.WebSocketResponse, service: AppService) -> None:
    """Hand on what the page says, until it goes or says what no page of ours does."""
    async for message in websocket:
        if message.type != WSMsgType.TEXT:
            return
        try:
            said = json.loads(message.data)
        except ValueError:
            return
        if isinstance(said, list) and said[:1] == ["ping"]:
            await websocket.send_json(["pong", *said[1:2]])
        elif not await _hand_on(said, service):
            return


async def _hand_on(said: object, service: AppService) -> bool:
    """False when nobody understands it."""
    match said:
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


async def _end(service: AppService) -> None:
    """Ask the dashboard to quit, and see that it has gone."""
    process = service._process
    if process is None:
        return

    async def quit_by_itself() -> None:
        await service.stop()
        await process.wait()

    # Not wait_for(): it cancels, and textual-serve takes that for the end of what it waits for.
    quitting = asyncio.ensure_future(quit_by_itself())
    try:
        await asyncio.wait({quitting}, timeout=QUIT_S)
    finally:
        if process.returncode is None:  # it hangs, or writes to a page that has stopped reading
            process.kill()
        await asyncio.wait({quitting}, timeout=KILLED_S)
