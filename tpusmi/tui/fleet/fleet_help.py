"""What the help of a fleet's pages says beside their keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.fleet.report.group_columns import COLUMNS
from tpusmi.report import words
from tpusmi.report.concerns import MARK, SILENT, STRAGGLES
from tpusmi.tui.draw.look import Glyphs
from tpusmi.tui.help_text import Section

STATES = Section(
    "Words",
    (
        ("live", "Its exporter answers, and its numbers are fresh."),
        ("old", "Its exporter answers with old numbers, or was last heard a moment ago."),
        ("down", "Its exporter does not answer: its numbers are the last ones."),
        ("pending", "It has not been asked for long enough to say."),
        ("held idle", "Chips that a process holds, idle for 15 minutes or more."),
        ("straggler", "A host whose steps take longer than those of its job: all wait for it."),
        ("5m AGO", "An earlier time is shown; READING: the last screen, until that time is read."),
        ("FAILED", "Nothing could be read: what is shown is as old as the header says."),
    ),
)
FILTERS = Section(
    "Words of a filter: all must match",
    (
        ("w-3", "This text in the name of a host, its slice, job or user."),
        ("job=llama", "Jobs whose name begins with this; slice=, host= and user= likewise."),
        ("mxu<30", "Compares a figure: < <= > >=. Unknown values do not match."),
        ("!word", "The opposite of any of these."),
    ),
)
ABOUT_TABLES = ("fleet", "hosts")


def sections_of(page: str, glyphs: Glyphs) -> list[Section]:
    """The sections below the keys of that page."""
    tables = [FILTERS, _columns()] if page in ABOUT_TABLES else []
    return [STATES, Section("Marks", tuple(_marks(glyphs))), *tables]


def _columns() -> Section:
    return Section("Columns", tuple((c.title, c.help) for c in COLUMNS))


def _marks(glyphs: Glyphs) -> Iterator[tuple[str, str]]:
    yield f"a-7{MARK}", "a notice is about it"
    yield SILENT, "in a heat map: its host is down"
    yield STRAGGLES, "in a heat map: the others wait for its host"
    yield "(18 %)", "in parentheses: an old value, the last one of a host that is not live"
    yield "≥12", "a sum of which some parts are unknown"
    yield words.UNKNOWN, "not measured: unknown, which is not 0"
    yield f"{glyphs.down} {glyphs.up}", "sorted by this column, largest or smallest first"
    yield glyphs.cut, "a text that was cut: there is more"
