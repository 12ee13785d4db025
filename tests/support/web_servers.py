"""`tpusmi serve-tui` as a command of its own, and every process that comes from it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

from support.listening_commands import LIMIT_S, Listening, listening
from tpusmi.sources.holders import procfs
from tpusmi.web import server as web


class Serving(Listening):
    """A server of dashboards that listens."""

    @property
    def dashboards(self) -> list[int]:
        """The pids of those that are behind a tab. What one starts is its copy for a moment."""
        found = [pid for pid in self.processes if "tpusmi.cli.dashboard" in _command(pid)]
        return [pid for pid in found if _parent(pid) not in found]

    def end(self, number: signal.Signals) -> int:
        """Send the signal and wait for the end: its exit code."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


def _command(pid: int) -> list[str]:
    """Its words; none when it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _parent(pid: int) -> int:
    stat = procfs.read_stat(f"/proc/{pid}")
    return 0 if stat is None else stat.parent


def serving(
    directory: Path, *arguments: str, prefix: tuple[str, ...] = ()
) -> AbstractContextManager[Serving]:
    """A server on a free port. `prefix` is put before its command."""
    words = ("serve-tui", "--port", "0", *arguments)
    return listening(Serving, directory, *words, prefix=prefix)


@asynccontextmanager
async def serving_here(command: str, said: list[str] | None = None) -> AsyncIterator[str]:
    """The address of a server in this process, with another command in a dashboard's place. What it
    prints is added to `said`.
    """
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    plan = web.Service(command, "127.0.0.1", 0)
    say = [].append if said is None else said.append
    serve = asyncio.ensure_future(web.serve(plan, port.set_result, {signal.SIGUSR1: 7}, say))
    try:
        yield f"http://127.0.0.1:{await port}"
    finally:
        signal.raise_signal(signal.SIGUSR1)
        assert await asyncio.wait_for(serve, LIMIT_S) == 7
