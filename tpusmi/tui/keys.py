"""Every key, declared once: the footer, the help, the palette and a user's key map read this."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding

from tpusmi.tui.keymap import in_ascii, printed

END = "End the selected or tagged processes with SIGTERM (asks first)"
SPAN = "Time span of the graphs: all data, or 10, 5, 2 or 1 minutes"
FILTER = "Filter processes: words, user=ann, chip=0-3, mxu<30, ~train.*v2, stale; !word excludes"
TOPOLOGY = "Open the topology page: chips at their places in the slice, and their links"
SCREENSHOT = "Save a screenshot (SVG) in the current directory"


def key(keys: str, action: str, label: str, id: str, tooltip: str, shown: str = "") -> Binding:
    """A binding. With `shown`, its key as the footer spells it, the binding is in the footer."""
    return Binding(
        keys, action, label, id=id, tooltip=tooltip, show=bool(shown), key_display=shown or None
    )


def moving(prefix: str = "") -> list[Binding]:
    """The keys that move the cursor of a table or tree; their ids begin with the prefix."""
    return [
        key("up", "move(-1)", "Up", f"{prefix}up", "Move the cursor up"),
        key("down", "move(1)", "Down", f"{prefix}down", "Move the cursor down"),
        key("pageup", "page(-1)", "Page up", f"{prefix}page-up", "Move a page up"),
        key("pagedown", "page(1)", "Page down", f"{prefix}page-down", "Move a page down"),
        key("home", "jump(0)", "First", f"{prefix}home", "Move the cursor to the first row"),
        key("end", "jump(-1)", "Last", f"{prefix}end", "Move the cursor to the last row"),
    ]


ENDING = [
    key("k,f9", "end('SIGTERM')", "End", "kill", END, "k"),
    key("K", "end('SIGKILL')", "SIGKILL", "kill-kill", "End with SIGKILL (asks first)"),
    key("I", "end('SIGINT')", "SIGINT", "kill-int", "End with SIGINT (asks first)"),
]
"""Keys that do not exist where processes may not be ended."""
FORGET = key(
    "C", "forget", "Clear", "clear", "Forget ended jobs: remove what they left (asks first)"
)
"""It does not exist there either."""

PROFILE = key(
    "P",
    "profile",
    "Profile",
    "profile",
    "Profile the selected process: capture a short trace (asks first), or show the last one",
    "P",
)
"""Nor does this one: a capture slows the job down."""
SLICE = key("S", "app.open('slice')", "Slice", "slice", "Open the slice page: all hosts of the job")
"""The main page and the topology page have it: the memory page has an S of its own."""

FIRST = [
    key("q,f10", "leave", "Quit", "quit", "Quit", "q"),
    Binding("ctrl+c", "leave", "Quit", id="interrupt", tooltip="Quit", show=False, priority=True),
    key("question_mark,h,f1", "help", "Help", "help", "Keys, marks and columns", "?"),
    key("d", "open('device')", "Device", "device", "Open the page of the selected device", "d"),
    key("m", "open('memory')", "Memory", "memory", "Open the memory page: what holds memory", "m"),
    key("j", "open('job')", "Job", "job", "Open the job page: steps, compilations, phases", "j"),
    key("T", "open('topology')", "Topology", "topology", TOPOLOGY, "T"),
    PROFILE,
    *ENDING,
]
"""Keys of every page that come first in its footer."""
LAST = [
    key("w", "span", "Span", "span", SPAN, "w"),
    key("p,Z", "pause", "Pause", "pause", "Pause / resume", "p"),
    key("left", "aside(-1)", "Earlier", "earlier", "Go 10 s back in time (heat map: left)", "←→"),
    key("right", "aside(1)", "Later", "later", "Go 10 s forward in time (heat map: right)"),
    key("shift+left", "travel(60)", "Minute earlier", "earlier-minute", "Go 1 min back in time"),
    key("shift+right", "travel(-60)", "Minute later", "later-minute", "Go 1 min forward in time"),
    key("n", "now", "Now", "now", "Return to now"),
    key("plus,equals_sign", "interval(1)", "Interval", "slower", "Refresh less often", "+/-"),
    key("minus,underscore", "interval(-1)", "Faster", "faster", "Refresh more often"),
    key("r,f5,ctrl+r", "again", "Refresh", "refresh", "Refresh now"),
    key("colon,ctrl+p", "palette", "Commands", "palette", "Find a command by name", ":"),
    key("s", "picture", "Screenshot", "picture", SCREENSHOT),
    key("y", "copy", "Copy", "copy", "Copy the selected pid, device, or file and line"),
    key("escape", "step_back", "Back", "back", "Go back: leave the past, the filter or the page"),
]
EVERYWHERE = [*FIRST, *LAST]

MAIN = [
    key("enter", "enter", "Open", "open", "Open the selected device or job", "Enter"),
    SLICE,
    key("tab,shift+tab", "panel", "Panel", "panel", "Switch between devices and processes"),
    key("slash", "filter", "Filter", "filter", FILTER, "/"),
    key("u", "user", "User", "user", "Show one user's processes; an empty name shows all users"),
    key("space", "tag", "Tag", "tag", "Tag / untag a process, to end several at once", "Space"),
    key("t", "tree", "Tree", "tree", "Show processes as a tree / as a list", "t"),
    key("o", "order", "Order", "order", "Sort by column: o, then its letter (capital: reversed)"),
    key("v", "view(1)", "View", "view", "Next device view: full, compact, heat map", "v"),
    key("a", "view('auto')", "Auto", "view-auto", "Device view that fits the screen"),
    key("f", "view('full')", "Full", "view-full", "Full view: one line per device"),
    key(
        "c", "view('compact')", "Compact", "view-compact", "Compact view: several devices per line"
    ),
    key("H", "view('heat')", "Heat map", "view-heat", "Heat map: one cell per device"),
    key("1", "hide('header')", "Header", "hide-header", "Show / hide the header"),
    key("2", "hide('devices')", "Devices", "hide-devices", "Show / hide the devices"),
    key("3", "hide('graphs')", "Graphs", "hide-graphs", "Show / hide the graphs"),
    key("4", "hide('processes')", "Processes", "hide-processes", "Show / hide the processes"),
    key("l", "choose('columns')", "Columns", "columns", "Choose the columns of both tables"),
    key("f2", "choose('panels')", "Settings", "settings", "Settings: panels, columns, theme"),
    key("f12", "save", "Save", "save", "Save the view, columns and sorting in the settings file"),
    key("g", "graph(1)", "Graph", "graph", "Next graph: HBM, MXU, duty cycle, bandwidth"),
    key("full_stop,greater_than_sign", "sort(1)", "Sort", "sort", "Sort by next column", "<>"),
    key("comma,less_than_sign", "sort(-1)", "Sort back", "sort-back", "Sort by previous column"),
    key("R", "reverse", "Reverse", "reverse", "Reverse the sort order"),
    key("x", "stale", "Stale", "stale", "Select the next stale holder"),
    key("e", "environment", "Environment", "environment", "Show its TPU and JAX variables"),
    key("right_curly_bracket", "shift(1)", "Right", "commands-right", "Scroll the commands right"),
    key("left_curly_bracket", "shift(-1)", "Left", "commands-left", "Scroll the commands left"),
    key("X", "ended", "Ended", "ended", "Show each ended job / fold ended jobs into one line"),
    FORGET,
    *moving(),
    key("left_square_bracket", "devices(-1)", "Devices up", "devices-up", "Scroll devices up"),
    key(
        "right_square_bracket", "devices(1)", "Devices down", "devices-down", "Scroll devices down"
    ),
]


def beside(bindings: list[Binding], own: list[Binding]) -> list[Binding]:
    """The bindings without those whose keys the page has for something of its own."""
    taken = {key for b in own for key in b.key.split(",")}
    return [b for b in bindings if b in own or taken.isdisjoint(b.key.split(","))]


def offered(bindings: list[Binding], may_end: bool) -> list[Binding]:
    """The bindings; unless `may_end`, without those that end or capture processes or remove
    files.
    """
    return bindings if may_end else [b for b in bindings if b not in (*ENDING, FORGET, PROFILE)]


def key_names(binding: Binding) -> list[str]:
    """The keys of a binding as printed on a keyboard: `?`, `PgUp`, `F1`, `Ctrl-C`."""
    return [printed(key) for key in binding.key.split(",")]


def shown_key(binding: Binding) -> str:
    """The key as the footer spells it."""
    return binding.key_display or key_names(binding)[0]


def footer(
    bindings: Iterable[Binding], width: int, *, only_ascii: bool = False
) -> list[tuple[str, str]]:
    """Texts with styles: the keys of the bindings for the footer, as many as fit."""
    parts: list[tuple[str, str]] = []
    for b in bindings:
        if not b.show:
            continue
        name = in_ascii(shown_key(b)) if only_ascii else shown_key(b)
        what = f" {b.description} "
        width -= len(name) + len(what)
        if width < -1:  # the last blank may be cut
            break
        parts += [(name, "key"), (what, "plain")]
    return parts
