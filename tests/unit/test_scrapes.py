"""A text is made once for all clients of one moment, or given up; a file is written in one step."""

from __future__ import annotations

import asyncio
import gzip
import os
import threading
from pathlib import Path

import pytest

from tpusmi.exporter import scrapes as scrapes_module
from tpusmi.exporter import textfile
from tpusmi.exporter.exposition import Format
from tpusmi.exporter.scrapes import KEPT_S, Scrapes


class Texts:
    """Makes texts with the number of each, and notices how many are made at once."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.made, self.at_once, self._running = 0, 0, 0
        self._takes_s = takes_s
        self.ended = threading.Event()
        """No text takes longer."""
        self._lock = threading.Lock()

    def __call__(self, form: Format) -> bytes:
        with self._lock:
            self.made += 1
            self._running += 1
            self.at_once = max(self.at_once, self._running)
            number = self.made
        self.ended.wait(self._takes_s)
        with self._lock:
            self._running -= 1
        return f"{form.name} {number}".encode()


def test_clients_that_ask_at_one_time_get_one_text() -> None:
    texts = Texts(takes_s=0.1)
    scrapes = Scrapes(texts)

    async def all_at_once() -> set[bytes]:
        return {*await asyncio.gather(*(scrapes.body(Format.TEXT, False) for _ in range(200)))}

    assert asyncio.run(all_at_once()) == {b"TEXT 1"}
    assert texts.made == 1


def test_each_format_is_made_by_itself_and_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes_module, "KEPT_S", 3600.0)
    texts = Texts()
    scrapes = Scrapes(texts)

    async def ask() -> list[bytes]:
        wanted = [(form, zipped) for form in Format for zipped in (False, True)]
        return [await scrapes.body(*one) for one in wanted * 3]

    plain, zipped, openmetrics, zipped_openmetrics, *again = asyncio.run(ask())
    assert (plain, openmetrics) == (b"TEXT 1", b"OPENMETRICS 2")
    assert gzip.decompress(zipped) == plain
    assert gzip.decompress(zipped_openmetrics) == openmetrics
    assert again == [plain, zipped, openmetrics, zipped_openmetrics] * 2
    assert texts.made == 2


def test_a_text_is_made_again_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.5 <= KEPT_S <= 2
    monkeypatch.setattr(scrapes_module, "KEPT_S", 0.02)
    scrapes = Scrapes(Texts())

    async def ask() -> list[bytes]:
        first = await scrapes.body(Format.TEXT, False)
        await asyncio.sleep(0.05)
        return [first, await scrapes.body(Format.TEXT, False)]

    assert asyncio.run(ask()) == [b"TEXT 1", b"TEXT 2"]


def test_a_text_that_takes_too_long_is_given_up_and_made_no_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scrapes_module, "MADE_WITHIN_S", 0.05)
    texts = Texts(takes_s=60.0)
    scrapes = Scrapes(texts)

    async def ask() -> list[object]:
        asked = (scrapes.body(Format.TEXT, False) for _ in range(50))
        try:
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            texts.ended.set()

    refused = asyncio.run(ask())
    assert len(refused) == 50
    assert all(isinstance(one, TimeoutError) for one in refused)
    assert texts.made == 1


def test_a_text_that_fails_once_is_made_again() -> None:
    outcomes = iter((ValueError("no"), b"text"))

    def text(form: Format) -> bytes:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    scrapes = Scrapes(text)

    async def ask() -> bytes:
        with pytest.raises(ValueError, match="no"):
            await scrapes.body(Format.TEXT, False)
        return await scrapes.body(Format.TEXT, False)

    assert asyncio.run(ask()) == b"text"


# -- the text file


def test_a_file_that_cannot_be_written_is_said_once_and_tried_again(tmp_path: Path) -> None:
    directory, said, end = tmp_path / "gone", [], threading.Event()
    written = []

    def text() -> bytes:
        written.append(1)
        if len(written) == 5:
            directory.mkdir()
        if len(written) == 8:
            assert (directory / textfile.NAME).read_bytes() == b"text"
            end.set()
        return b"text"

    textfile.keep_writing(str(directory), text, 0.01, end, said.append)
    assert said == [f"{directory}/tpusmi.prom cannot be written: No such file or directory"]
    assert os.listdir(directory) == []


def test_a_link_in_the_place_of_the_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / textfile.UNFINISHED).symlink_to(victim)
    textfile.write(str(tmp_path), b"text")
    assert victim.read_text() == "keep"
    assert (tmp_path / textfile.NAME).read_bytes() == b"text"
    assert not (tmp_path / textfile.NAME).is_symlink()
