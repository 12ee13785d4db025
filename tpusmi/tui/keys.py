"""Every key, declared once: the footer, the help, the palette and a user's key map read this."""

from __future__ import annotations

from textual.binding import Binding

MOVE = "Move in the table"
OFTEN = "Look less, or more, often"
SCROLL = "Scroll the device table"
TIME = "Back in time by 10 s, and forth; with Shift by a minute"
END = "End the selected process, or all tagged, after asking: K SIGKILL, I SIGINT"
SPAN = "Graphs of all there is, or of 10, 5, 2 or 1 minutes"
FILTER = "Filter processes: words, user=ann, pid=12, chip=0-3, stale; !word for the opposite"
SORT_BY = "Sort by the column before, or the next"


def key(keys: str, action: str, label: str, id: str, tooltip: str, shown: str = "") -> Binding:
    """A binding; one with `shown`, the key as the footer spells it, is in the footer."""
    return Binding(
        keys, action, label, id=id, tooltip=tooltip, show=bool(shown), key_display=shown or None
    )


def moving(tooltip: str, prefix: str = "") -> list[Binding]:
    """The keys that move the cursor of a table or tree; their ids begin with the prefix."""
    return [
        key("up", "move(-1)", "Up", f"{prefix}up", tooltip),
        key("down", "move(1)", "Down", f"{prefix}down", tooltip),
        key("pageup", "page(-1)", "Page up", f"{prefix}page-up", tooltip),
        key("pagedown", "page(1)", "Page down", f"{prefix}page-down", tooltip),
        key("home", "jump(0)", "First", f"{prefix}home", tooltip),
        key("end", "jump(-1)", "Last", f"{prefix}end", tooltip),
    ]


ENDING = [
    key("k,f9", "end('SIGTERM')", "End", "kill", END, "k"),
    key("T", "end('SIGTERM')", "SIGTERM", "kill-term", END),
    key("K", "end('SIGKILL')", "SIGKILL", "kill-kill", END),
    key("I", "end('SIGINT')", "SIGINT", "kill-int", END),
]
"""Those that are not there where nothing may be ended."""

FIRST = [
    key("q", "leave", "Quit", "quit", "Quit", "q"),
    Binding("ctrl+c", "leave", "Quit", id="interrupt", tooltip="Quit", show=False, priority=True),
    key("question_mark,h,f1", "help", "Help", "help", "Keys, marks and columns", "?"),
    key("d", "open('device')", "Device", "device", "The selected device", "d"),
    key("m", "open('memory')", "Memory", "memory", "What holds the device memory", "m"),
    key("j", "open('job')", "Job", "job", "Steps, compilations and phases of a job", "j"),
    *ENDING,
]
"""Keys of every page that its footer names first."""
LAST = [
    key("w", "span", "Span", "span", SPAN, "w"),
    key("p,Z", "pause", "Pause", "pause", "Pause, and go on", "p"),
    key("left", "travel(10)", "Earlier", "earlier", TIME, "←→"),
    key("right", "travel(-10)", "Later", "later", TIME),
    key("shift+left", "travel(60)", "A minute earlier", "earlier-minute", TIME),
    key("shift+right", "travel(-60)", "A minute later", "later-minute", TIME),
    key("n", "now", "Now", "now", "Return to now"),
    key("plus,equals_sign", "interval(1)", "Interval", "slower", OFTEN, "+/-"),
    key("minus,underscore", "interval(-1)", "Faster", "faster", OFTEN),
    key("r,f5", "again", "Refresh", "refresh", "Look now"),
    key("colon,ctrl+p", "palette", "Commands", "palette", "Every command by its name", ":"),
    key("s", "picture", "Screenshot", "picture", "Save this screen as SVG in this directory"),
    key("y", "copy", "Copy", "copy", "Copy what is selected: pid, device, file and line"),
    key("escape", "step_back", "Back", "back", "Back: from a page, from the past, from a filter"),
]
EVERYWHERE = [*FIRST, *LAST]

MAIN = [
    key("enter", "enter", "Open", "open", "Open what is selected: a device, or a job", "Enter"),
    key("tab,shift+tab", "panel", "Panel", "panel", "To the devices, and back to the jobs"),
    key("slash", "filter", "Filter", "filter", FILTER, "/"),
    key("u", "user", "User", "user", "Show one user's processes; Enter alone shows everyone's"),
    key("space", "tag", "Tag", "tag", "Tag a process, or untag it: to end several", "Space"),
    key("t", "tree", "Tree", "tree", "Processes under those that started them, or a list", "t"),
    key("o", "order", "Order", "order", "Sort by the column of the next key; capital: reversed"),
    key("v", "view(1)", "View", "view", "The next way to show devices", "v"),
    key("a", "view('auto')", "Auto", "view-auto", "Choose the way by the size"),
    key("f", "view('full')", "Full", "view-full", "A line for each device"),
    key("c", "view('compact')", "Compact", "view-compact", "Several devices on a line"),
    key("H", "view('heat')", "Heat map", "view-heat", "A cell for each device"),
    key("g", "graph(1)", "Graph", "graph", "Draw the next quantity: HBM, MXU, duty, bandwidth"),
    key("full_stop,greater_than_sign", "sort(1)", "Sort", "sort", SORT_BY, "<>"),
    key("comma,less_than_sign", "sort(-1)", "Sort back", "sort-back", SORT_BY),
    key("R", "reverse", "Reverse", "reverse", "Sort the other way round"),
    key("x", "stale", "Stale", "stale", "Select the next stale holder"),
    *moving(MOVE),
    key("left_square_bracket", "devices(-1)", "Devices up", "devices-up", SCROLL),
    key("right_square_bracket", "devices(1)", "Devices down", "devices-down", SCROLL),
]

_NAMES = {
    **{
        "question_mark": "?",
        "slash": "/",
        "plus": "+",
        "minus": "-",
        "full_stop": ".",
        "comma": ",",
        "colon": ":",
    },
    **{"left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<"},
    **{"greater_than_sign": ">", "equals_sign": "=", "underscore": "_"},
    **{"ctrl+c": "Ctrl-C", "ctrl+p": "Ctrl-P", "shift+tab": "Shift-Tab"},
    **{"shift+left": "Shift-←", "shift+right": "Shift-→"},
    **{"left": "←", "right": "→", "up": "↑", "down": "↓"},
    **{
        "escape": "Esc",
        "pageup": "PgUp",
        "pagedown": "PgDn",
    },
    **{name: name.capitalize() for name in ("enter", "home", "end", "tab", "space")},
}


def offered(bindings: list[Binding], may_end: bool) -> list[Binding]:
    """Those of the bindings that are there where processes may be ended, or may not."""
    return bindings if may_end else [b for b in bindings if b not in ENDING]


def key_names(binding: Binding) -> list[str]:
    """How the keys of a binding are printed on a keyboard."""
    return [_NAMES.get(key) or _other(key) for key in binding.key.split(",")]


def _other(key: str) -> str:
    """`F2`; a letter as it is."""
    return key.upper() if key[:1] == "f" and key[1:].isdigit() else key


def shown_key(binding: Binding) -> str:
    """How the footer spells it."""
    return binding.key_display or key_names(binding)[0]
