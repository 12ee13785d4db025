"""The text that scrapes get: made from the newest snapshot, once for all that ask at one time."""

from __future__ import annotations

import asyncio
import gzip
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tpusmi.collect import Collector
from tpusmi.exporter.exposition import Format, body
from tpusmi.exporter.families import Families
from tpusmi.exporter.of_snapshot import add_snapshot

KEPT_S = 1.0
"""A text is not made again before: sources answer no more often."""
MADE_WITHIN_S = 5.0
"""Making a text takes milliseconds."""
GZIP_LEVEL = 4


class Exported(NamedTuple):
    """What to export."""

    with_processes: bool = True
    host: str = ""
    """Value of the label of that name; empty for the machine's name."""
    slice: str = ""
    """Value of the label of that name; empty for none."""


class _Made(NamedTuple):
    """A text, plain and compressed."""

    at_s: float
    plain: bytes
    zipped: bytes


class ScrapeText:
    """Makes the text of the newest snapshot. Reads no source, and waits for none."""

    def __init__(self, collector: Collector, exported: Exported) -> None:
        self._collector, self._exported = collector, exported

    def is_ready(self) -> bool:
        """True once every source has answered."""
        return self._collector.have_all_answered()

    def __call__(self, form: Format) -> bytes:
        """The text at present."""
        began_s = time.perf_counter()
        s = self._collector.snapshot()
        simulated = "true" if s.simulated else None
        everywhere = {
            "host": self._exported.host or s.host.name,
            "slice": self._exported.slice,
            "simulated": simulated,
        }
        f = Families(everywhere)
        f.add_info("build", version=s.tpusmi_version, python_version=platform.python_version())
        add_snapshot(f, s, self._exported.with_processes)
        for source, age_s in self._collector.ages_s().items():
            f.add("source_age_seconds", age_s, source=source)
        f.add("left_out", f.left_out, what="samples")
        f.add("snapshot_timestamp_seconds", time.time())
        f.add("snapshot_build_seconds", time.perf_counter() - began_s)
        return body(f.in_order(), form)


class Scrapes:
    """Answers scrapes, each text being kept for KEPT_S."""

    def __init__(self, text: Callable[[Format], bytes]) -> None:
        self._text = text
        self._kept: dict[Format, _Made] = {}
        self._making: dict[Format, asyncio.Future[_Made]] = {}
        # Not the loop's own, for which the end of the program would wait.
        self._threads = ThreadPoolExecutor(len(Format), "tpusmi-scrape")

    async def body(self, form: Format, zipped: bool) -> bytes:
        """The text in that format. Raises TimeoutError when it cannot be made in time."""
        made = self._kept.get(form)
        if made is None or time.monotonic() - made.at_s >= KEPT_S:
            made = await self._made(form)
        return made.zipped if zipped else made.plain

    async def _made(self, form: Format) -> _Made:
        """A new text. Requests that arrive while it is made get the same one."""
        making = self._making.get(form)
        if making is None:
            loop = asyncio.get_running_loop()
            making = loop.run_in_executor(self._threads, self._make, form)
            self._making[form] = making
            making.add_done_callback(lambda _: self._making.pop(form, None))
        try:
            made = await asyncio.wait_for(asyncio.shield(making), MADE_WITHIN_S)
        except asyncio.TimeoutError:
            raise TimeoutError from None
        self._kept[form] = made
        return made

    def _make(self, form: Format) -> _Made:
        plain = self._text(form)
        return _Made(time.monotonic(), plain, gzip.compress(plain, GZIP_LEVEL, mtime=0))
