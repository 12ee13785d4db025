"""The keys of the dashboard of a fleet: those of a host's where they do the same."""

from __future__ import annotations

from textual.binding import Binding

from tpusmi.tui.keys import FIRST, LAST, MAIN, key, moving

_MAIN = {b.id: b for b in (*FIRST, *LAST, *MAIN)}
FILTER = "Filter hosts: words, job=llama, slice=a, host=w-3, user=ann, mxu<30; !word excludes"


def _same(*ids: str) -> list[Binding]:
    return [_MAIN[id] for id in ids]


FIRST_KEYS = [
    *_same("quit", "interrupt", "help"),
    key("k,K,I,f9", "no_end", "End", "fleet-end", "Why no process can be ended from here"),
]
"""Keys of every page that come first in its footer."""
TRAVEL = [
    key("left", "app.travel(60)", "Earlier", "fleet-earlier", "Go 1 min back in time", "←→"),
    key("right", "app.travel(-60)", "Later", "fleet-later", "Go 1 min forward in time"),
]
"""Keys of pages whose cursor moves only up and down."""
_ACROSS = [
    key(
        "left",
        "across(-1)",
        "Earlier",
        "fleet-left",
        "Go 1 min back in time (heat map: left)",
        "←→",
    ),
    key("right", "across(1)", "Later", "fleet-right", "Go 1 min forward in time (heat map: right)"),
]
LAST_KEYS = [
    key(
        "shift+left",
        "travel(600)",
        "10 minutes earlier",
        "fleet-much-earlier",
        "Go 10 min back in time",
    ),
    key(
        "shift+right",
        "travel(-600)",
        "10 minutes later",
        "fleet-much-later",
        "Go 10 min forward in time",
    ),
    *_same("now", "pause", "slower", "faster", "refresh", "palette", "picture"),
    key("y", "copy", "Copy", "copy", "Copy the name of the selected host, job or slice"),
    key("Y", "copy_ssh", "Copy ssh", "copy-ssh", "Copy `ssh HOST` for the selected host"),
    key(
        "escape",
        "step_back",
        "Back",
        "back",
        "Go back: leave the filter, the map, the page or the past",
    ),
]
EVERYWHERE = [*FIRST_KEYS, *LAST_KEYS]

QUANTITY = key(
    "g", "graph(1)", "Quantity", "graph", "Next quantity: HBM, MXU, duty, bandwidth", "g"
)
TOPOLOGY = key(
    "T", "topology", "Topology", "topology", "Show the chips of its slice as a torus", "T"
)
_SHARED = [
    key("enter", "enter", "Open", "open", "Open the selected row", "Enter"),
    key("slash", "filter", "Filter", "filter", FILTER, "/"),
    key(
        "o",
        "order",
        "Order",
        "order",
        "Sort by column: o, then its letter (capital: reversed)",
        "o",
    ),
    key("v", "view(1)", "View", "view", "Show the table / the heat map of all chips", "v"),
    key("H", "view('heat')", "Heat map", "view-heat", "Heat map: one cell per chip"),
    key("f", "view('full')", "Table", "view-full", "The table"),
    TOPOLOGY,
    QUANTITY,
    *_same("sort", "sort-back", "reverse"),
    *moving(),
    *_ACROSS,
]
TABLE = _SHARED
"""Keys of the hosts of one job or slice."""
OVERVIEW = [
    _SHARED[0],
    key("G,tab", "group(1)", "Group", "group", "Group by job / slice / host", "G"),
    key("shift+tab", "group(-1)", "Group back", "group-back", "Previous grouping"),
    *_SHARED[1:],
]
SCROLLING = [
    key("down", "line(1)", "Line down", "fleet-line-down", "Scroll a line down"),
    key("up", "line(-1)", "Line up", "fleet-line-up", "Scroll a line up"),
    key("pagedown,space", "scroll(1)", "Further", "fleet-further", "Scroll the page down"),
    key("pageup", "scroll(-1)", "Before", "fleet-before", "Scroll the page up"),
    key("home", "jump(0)", "Top", "fleet-top", "Scroll to the top of the page"),
    key("end", "jump(1)", "Bottom", "fleet-bottom", "Scroll to the end of the page"),
]
HOST = [
    key("w", "span", "Span", "span", "Time span of the graphs: 15 min, 1 h, 6 h, 1 d or 7 d", "w"),
    key(
        "tab",
        "step(1)",
        "Next",
        "fleet-next-host",
        "Next host of the list it was opened from",
        "Tab",
    ),
    key("shift+tab", "step(-1)", "Before", "fleet-previous-host", "Previous host of that list"),
    TOPOLOGY,
    *TRAVEL,
    *SCROLLING,
]
TORUS = [
    key("enter", "enter", "Open", "open", "Open the host of the selected chip", "Enter"),
    QUANTITY,
    key("tab", "step(1)", "Next", "fleet-next-slice", "Next slice", "Tab"),
    key("shift+tab", "step(-1)", "Before", "fleet-previous-slice", "Previous slice"),
    key("up", "chip(0, -1)", "Up", "fleet-chip-up", "Move the cursor to the chip above"),
    key("down", "chip(0, 1)", "Down", "fleet-chip-down", "Move the cursor to the chip below"),
    key("left", "chip(-1, 0)", "Left", "fleet-left", "Move the cursor to the left"),
    key("right", "chip(1, 0)", "Right", "fleet-right", "Move the cursor to the right"),
    *SCROLLING[2:],
]
PAGES = {"fleet": OVERVIEW, "fleet hosts": TABLE, "fleet host": HOST, "fleet topology": TORUS}
"""The keys of each page of a fleet, besides those of every page, by its name in the settings."""
