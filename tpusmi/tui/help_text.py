"""What the help says: keys in groups, the marks, and every column of a page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from textual.binding import Binding

from tpusmi.report import rows, words
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS, ColumnSpec
from tpusmi.report.concerns import MARK as WARNED
from tpusmi.report.slice_table import HOST_COLUMNS
from tpusmi.tui.draw.look import Glyphs
from tpusmi.tui.draw.table import MARK
from tpusmi.tui.help_words import WORDS
from tpusmi.tui.keys import key_names
from tpusmi.tui.process.process_facts import LETTERS, SILENT, STALE, STOPPED, SUSPECT
from tpusmi.tui.process.process_facts import UNKNOWN as UNKNOWN_PHASE

Entry = tuple[str, str]
"""A name, such as keys or the title of a column, and what it means."""


class Section(NamedTuple):
    """Entries under a title."""

    title: str
    entries: tuple[Entry, ...]


GROUPS: Mapping[str, Mapping[str, str]] = {
    "Move": {
        "Move the cursor": "move page",
        "Next / previous": "step",
        "Scroll the page": "scroll",
        "Scroll by a line": "line",
        "First / last row": "jump",
        "Devices / processes": "panel",
        "Scroll the devices": "devices",
    },
    "Pages": {
        "Open the selected row": "enter",
        "Device / memory / job": "open",
        "Profile of a job": "profile",
        "Topology / slice": "#topology #slice",
        "Back": "step_back",
        "Find a command by name": "palette",
        "This help": "help",
        "Quit": "leave",
    },
    "Time": {
        "10 s back / forward": "aside(-1) aside(1)",
        "1 min either way": "travel",
        "1 min back / forward": "across #fleet-earlier #fleet-later",
        "10 min either way": "#fleet-much-earlier #fleet-much-later",
        "Return to now": "now",
        "Time span of the graphs": "span",
        "Pause / resume": "pause",
        "Refresh now": "again",
        "Refresh slower / faster": "interval",
    },
    "View": {
        "Views of the devices": "view",
        "Next quantity shown": "graph",
        "Processes as tree / list": "tree",
        "Show / hide each panel": "hide",
        "Choose columns, settings": "choose",
        "Show / fold ended jobs": "ended",
        "Unfold / fold a row": "fold",
        "Unfold / fold all rows": "fold_all",
        "Set the mark for CHANGE": "mark",
        "Compare two profiles": "compare",
        "Show its variables": "environment",
        "Scroll the commands": "shift",
        "Next / previous device": "device",
    },
    "Sort and filter": {
        "Filter (see below)": "#filter",
        "Show lines with a text": "filter",
        "Show one user": "user",
        "Next / previous column": "#sort #sort-back",
        "Sort by the next column": "sort",
        "Sort: o, column's letter": "order",
        "Reverse the order": "reverse",
        "Next order of the hosts": "next_order",
    },
    "End processes": {
        "Select next stale holder": "stale",
        "Tag, to end several": "tag",
        "End selected or tagged": "#kill",
        "SIGKILL, SIGINT": "end",
        "Forget ended jobs": "forget",
    },
    "Copy and save": {
        "Screenshot, copy text": "copy picture",
        "Save the settings": "save",
    },
}
"""By group, the rows of keys: what they do, and their actions, or `#` and the id of a binding."""
OTHER = "Other keys"
MEMORY_COLUMNS: tuple[Entry, ...] = (
    ("BYTES", "Bytes of live arrays, or of compiled programs."),
    ("SHARE", "Share of all live arrays."),
    ("RATE", "Growth per minute, over the last five minutes, on all devices."),
    ("COUNT", "Arrays, or programs."),
    ("CHANGE", "Change of the bytes since the mark (b sets it)."),
    ("+/-", "Change of the count since the mark."),
    ("ALLOCATED BY", "The function and the line of code that made it, or the buffers."),
)
FILTERS = Section(
    "Words of a filter: all must match",
    (
        ("train", "This text in pid, user, command or phase."),
        ("user=ann", "Users whose name begins with this."),
        ("pid=10-20,31", "These pids."),
        ("chip=0-3", "Processes that have one of these devices."),
        ("mxu<30", "Compares a column: < <= > >=. Unknown values do not match."),
        ("step>0.5s", "Units: %, us, ms, s, min, h, KiB, MiB, GiB."),
        ("hbm>90", "Memory in use on one of its devices, in percent."),
        ("~train.*v2", "A pattern: . [a-z] ^ $ | \\d \\w, with * + ? behind one character."),
        ("stale maybe", "Holders that are stale, or may be."),
        ("!word", "The opposite of any of these."),
    ),
)


def sections(bindings: Iterable[Binding]) -> list[Section]:
    """The keys of those bindings in groups; keys that do the same share a row."""
    taken: dict[str, dict[str, list[str]]] = {group: {} for group in (*GROUPS, OTHER)}
    for binding in bindings:
        group, text = _place(binding)
        taken[group].setdefault(text, []).extend(key_names(binding))
    return [
        Section(group, tuple((" ".join(texts[text]), text) for text in _ordered(group, texts)))
        for group, texts in taken.items()
        if texts
    ]


def _ordered(group: str, texts: Iterable[str]) -> list[str]:
    places = [*GROUPS.get(group, ())]
    return sorted(texts, key=lambda text: places.index(text) if text in places else 0)


def group_of(binding: Binding) -> str:
    """The group that the keys of this binding are in."""
    return _place(binding)[0]


def _place(binding: Binding) -> tuple[str, str]:
    """The group of a binding, and the text of its row: its own if it is in no group."""
    name = binding.action.partition("(")[0]
    for token in (f"#{binding.id}", binding.action, name):
        for group, texts in GROUPS.items():
            for text, actions in texts.items():
                if token in actions.split():
                    return group, text
    return OTHER, binding.tooltip


def marks(glyphs: Glyphs) -> Section:
    """Every letter and mark on the pages."""
    return Section("Marks", tuple(_marks(glyphs)))


def _marks(glyphs: Glyphs) -> Iterator[Entry]:
    yield from ((letter, phase) for phase, letter in LETTERS.items())
    yield UNKNOWN_PHASE, "unknown: it has no agent, or is not verified"
    yield STALE, "left over (stale): holds the TPU and will do no more work"
    yield SUSPECT, "may be left over: its details show the evidence for and against"
    yield STOPPED, "stopped: by SIGSTOP, Ctrl-Z or a debugger"
    yield SILENT, "silent: alive, but its agent stopped writing"
    yield f"tpu:0{WARNED}", "a warning is about this device or process: its page says what to do"
    yield words.UNKNOWN, "not measured: unknown, which is not 0"
    yield "(18 %)", "in parentheses: an old value, or the last one of a job that has ended"
    yield "gray", "old, ended, not verified, or of another user"
    yield words.NOT_VERIFIED, "only a file claims that this process exists"
    yield rows.DITTO, "the value of the whole chip, in the row above"
    yield "≥10.9", "at least this: the most that tpusmi has seen"
    yield "~16.0", "a nominal size: what chips of this type have"
    yield glyphs.peak, "in a bar of memory: the peak"
    yield "live", "bytes of live arrays, where the memory in use is unknown"
    yield "4321+2", "pid 4321 and two other processes"
    yield MARK, "a process that is tagged with Space"
    yield f"{glyphs.down} {glyphs.up}", "sorted by this column, largest or smallest first"
    yield glyphs.cut, "a text that was cut: there is more"


def words_of(page: str) -> Section:
    """The words beside the numbers of that page; of the main page where its name is empty."""
    return Section("Words", WORDS[page])


def columns_of(page: str) -> list[Section]:
    """Every column of the page with that name; empty for the main page."""
    tables = {
        "": ("devices", "processes"),
        "device": ("devices",),
        "job": ("processes",),
        "memory": ("memory",),
        "profile": (),
        "slice": ("hosts",),
        "topology": (),
    }
    entries = {
        "devices": _helps(DEVICE_COLUMNS),
        "processes": _helps(PROCESS_COLUMNS),
        "memory": MEMORY_COLUMNS,
        "hosts": _helps(HOST_COLUMNS),
    }
    return [Section(f"Columns of {name}", entries[name]) for name in tables[page]]


def _helps(columns: Iterable[ColumnSpec]) -> tuple[Entry, ...]:
    """Titles and explanations of columns; the mark of a warning is among the marks."""
    return tuple((c.title, c.help) for c in columns if c.title != WARNED)
