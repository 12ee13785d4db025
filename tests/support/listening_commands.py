"""A command of tpusmi that listens, as a process of its own, with all that comes from it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from support.commands import TPUSMI, environment
from support.hosts import MARK, _kill, marked

LIMIT_S = 60.0


class Listening:
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
            self.url = next(iter(re.findall(r"https?://\S+", line)), "")

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].partition("/")[0])

    @property
    def processes(self) -> list[int]:
        """The pids of all that is alive of it, its own included."""
        return marked(self._mark)


Server = TypeVar("Server", bound=Listening)


@contextmanager
def listening(
    kind: Callable[[subprocess.Popen[str], str], Server],
    directory: Path,
    *words: str,
    prefix: Sequence[str] = (),
) -> Iterator[Server]:
    """The command `tpusmi WORDS`, gone at the end with all that it started. `prefix` is put
    before it.
    """
    mark = f"{time.monotonic_ns()}"
    process = subprocess.Popen(
        [*prefix, *TPUSMI, *words],
        env=environment(directory, **{MARK: mark}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield kind(process, mark)
    finally:
        process.terminate()  # it clears up behind itself
        try:
            process.communicate(timeout=LIMIT_S)
        finally:
            for pid in marked(mark):
                _kill(pid)
            process.communicate(timeout=LIMIT_S)
