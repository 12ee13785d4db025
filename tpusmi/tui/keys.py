"""Every key, declared once: the footer, the help and a user's key map read this."""

from __future__ import annotations

from textual.binding import Binding

MOVE = "Move in the process table"
SORT = "Sort by the next column, or the one before"
OFTEN = "Look less, or more, often"
SCROLL = "Scroll the device table"
END = "End the selected process, after asking: SIGTERM, K SIGKILL, I SIGINT"


def _key(keys: str, action: str, label: str, id: str, tooltip: str, shown: str = "") -> Binding:
    """A binding; one with `shown`, the key as the footer spells it, is in the footer."""
    return Binding(
        keys, action, label, id=id, tooltip=tooltip, show=bool(shown), key_display=shown or None
    )


ENDING = [
    _key("k,f9", "end('SIGTERM')", "End", "kill", END, "k"),
    _key("T", "end('SIGTERM')", "SIGTERM", "kill-term", END),
    _key("K", "end('SIGKILL')", "SIGKILL", "kill-kill", END),
    _key("I", "end('SIGINT')", "SIGINT", "kill-int", END),
]
"""Those that are not there where nothing may be ended."""

BINDINGS = [
    _key("q", "leave", "Quit", "quit", "Quit", "q"),
    Binding("ctrl+c", "leave", "Quit", id="interrupt", tooltip="Quit", show=False, priority=True),
    _key("question_mark,h,f1", "help", "Help", "help", "This page", "?"),
    _key(
        "enter",
        "expand",
        "Details",
        "expand",
        "Give the selected process the whole lower part",
        "Enter",
    ),
    *ENDING,
    _key("slash", "filter", "Filter", "filter", "Show only processes that contain a text", "/"),
    _key("o,full_stop,greater_than_sign", "sort(1)", "Sort", "sort", SORT, "o"),
    _key("comma,less_than_sign", "sort(-1)", "Sort back", "sort-back", SORT),
    _key("R", "reverse", "Reverse", "reverse", "Sort the other way round"),
    _key("p,Z", "pause", "Pause", "pause", "Pause, and go on", "p"),
    _key("plus,equals_sign", "interval(1)", "Interval", "slower", OFTEN, "+/-"),
    _key("minus,underscore", "interval(-1)", "Faster", "faster", OFTEN),
    _key("r,f5", "again", "Refresh", "refresh", "Look now", "r"),
    _key("up", "move(-1)", "Up", "up", MOVE),
    _key("down", "move(1)", "Down", "down", MOVE),
    _key("pageup", "page(-1)", "Page up", "page-up", MOVE),
    _key("pagedown", "page(1)", "Page down", "page-down", MOVE),
    _key("home", "jump(0)", "First", "home", MOVE),
    _key("end", "jump(-1)", "Last", "end", MOVE),
    _key("left_square_bracket", "devices(-1)", "Devices up", "devices-up", SCROLL),
    _key(
        "right_square_bracket",
        "devices(1)",
        "Devices down",
        "devices-down",
        "Scroll the device table",
    ),
    _key("escape", "step_back", "Back", "back", "Back: from details, from a filter"),
]

_NAMES = {
    **{
        "question_mark": "?",
        "slash": "/",
        "plus": "+",
        "minus": "-",
        "full_stop": ".",
        "comma": ",",
    },
    **{"left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<"},
    **{"greater_than_sign": ">", "equals_sign": "=", "underscore": "_", "ctrl+c": "Ctrl-C"},
    **{"escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn", "f1": "F1", "f5": "F5", "f9": "F9"},
    **{name: name.capitalize() for name in ("enter", "up", "down", "home", "end")},
}


def offered(may_end: bool) -> list[Binding]:
    """The bindings of a dashboard that may end processes, or may not."""
    return BINDINGS if may_end else [b for b in BINDINGS if b not in ENDING]


def key_names(binding: Binding) -> list[str]:
    """How the keys of a binding are printed on a keyboard."""
    return [_NAMES.get(key, key) for key in binding.key.split(",")]


def shown_key(binding: Binding) -> str:
    """How the footer spells it."""
    return binding.key_display or key_names(binding)[0]
