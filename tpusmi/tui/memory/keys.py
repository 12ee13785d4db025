"""The keys of the memory page."""

from __future__ import annotations

from tpusmi.tui.keys import key, moving

MOVE = "Move in the tree"
DEVICE = "Show the next device alone, or the one before; then all of them together"
ORDER = "Sort by bytes, by their change, by the count's, by count; a click on a title does, too"
KEYS = [
    key("enter", "fold", "Unfold", "fold", "Open or shut a row: its lines, its buffers", "Enter"),
    key(
        "b",
        "mark",
        "Mark",
        "mark",
        "Set the mark, or move it to now: CHANGE is what has grown since",
        "b",
    ),
    key("S", "sort", "Sort", "memory-sort", ORDER, "S"),
    key("D,greater_than_sign,full_stop", "device(1)", "Per device", "memory-device", DEVICE, "D"),
    key("less_than_sign,comma", "device(-1)", "Device before", "memory-device-before", DEVICE),
    key("slash", "filter", "Filter", "memory-filter", "Only lines that contain a text", "/"),
    key("tab", "step(1)", "Job", "memory-next", "The next job with a memory profile", "Tab"),
    key("shift+tab", "step(-1)", "Before", "memory-before", "The one before"),
    key("e", "fold_all(True)", "Unfold all", "unfold-all", "Open all rows"),
    key("E", "fold_all(False)", "Fold all", "fold-all", "Shut all rows"),
    *moving(MOVE, "memory-"),
]
