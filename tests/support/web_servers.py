"""`tpusmi serve-tui` as a command of its own, and every process that comes from it."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from support.commands import TPUSMI, environment
from support.hosts import MARK, _kill, marked
from tpusmi.web import server as web

LIMIT_S = 40.0


class Serving:
    """A server that listens. Its stderr is read up to the address."""

    def __init__(self, process: subprocess.Popen[str], mark: str) -> None:
        self.process = process
        self._mark = mark
        self.said = ""
        self.url = ""
        assert process.stderr is not None
        while not self.url:
            line = process.stderr.readline()
            assert line, f"it has ended: {self.said}"
            self.said += line
            self.url = next(iter(re.findall(r"http://\S+", line)), "")

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].partition("/")[0])

    @property
    def processes(self) -> list[int]:
        """Whatever is alive of it: its own pid too."""
        return marked(self._mark)

    @property
    def dashboards(self) -> list[int]:
        """The pids of those that are behind a tab."""
        return [pid for pid in self.processes if "tpusmi.cli.dashboard" in _command(pid)]

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


@contextmanager
def serving(directory: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> Iterator[Serving]:
    """A server on a free port, which is gone at the end with all that it started. `prefix` is put
    before its command.
    """
    mark = f"{time.monotonic_ns()}"
    process = subprocess.Popen(
        [*prefix, *TPUSMI, "serve-tui", "--port", "0", *arguments],
        env=environment(directory, **{MARK: mark}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Serving(process, mark)
    finally:
        process.terminate()  # it clears up behind itself
        try:
            process.communicate(timeout=LIMIT_S)
        finally:
            for pid in marked(mark):
                _kill(pid)
            process.communicate(timeout=LIMIT_S)


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
