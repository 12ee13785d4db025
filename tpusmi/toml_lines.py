"""The lines of a TOML file: where a key is, and text that its author forgot to quote. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

Value = str | float | Sequence[str]
"""A value that tpusmi writes: text, a number, true or false, or texts."""
LONGEST = 200
"""Characters of a line that are looked at."""
_KEY = re.compile(r"""["']?([\w-]{1,80})["']?\s{0,80}=""")
_TABLE = re.compile(r"""\[\s{0,9}["']?([\w-]{1,80})["']?\s{0,9}\]""")
_BARE = re.compile(r"([\w-]{1,80})\s{0,80}=\s{0,80}([^\s\"'\[{#][^\"'#]{0,80})")
_AT_LINE = re.compile(r"\(at line (\d{1,6}),")


def toml_value(value: Value) -> str:
    """The value as TOML. Texts must be printable.

    JSON's text, numbers, true and false are also TOML's if only quotes need escaping.
    """
    return json.dumps(value, ensure_ascii=False)


def key_of(line: str) -> str | None:
    """The key that the line sets; None if it sets none."""
    match = _KEY.match(line[:LONGEST].lstrip())
    return None if match is None else match[1]


def table_of(line: str) -> str | None:
    """The table that begins with this line; None if none does."""
    match = _TABLE.match(line[:LONGEST].lstrip())
    return None if match is None else match[1]


def line_of(lines: Sequence[str], way: Sequence[str]) -> int | None:
    """The index of the line that sets a key: `(key,)`, or `(table, key)`. None if it is unclear."""
    table = ""
    for n, line in enumerate(lines):
        if (begins := table_of(line)) is not None:
            table = begins
            if (table,) == tuple(way):
                return n
        elif (key := key_of(line)) is not None and (table, key) == ("", *way)[-2:]:
            return n
    return None


def place(text: str, way: Sequence[str]) -> str:
    """`line 3: `, where the file sets that key; empty if it is unclear."""
    n = line_of(text.split("\n"), way)
    return "" if n is None else f"line {n + 1}: "


def unquoted(text: str, error: str) -> str | None:
    """What to write where a text has no quotes; None if the parser's error is about something else.

    `theme = dark` is the most frequent mistake in such files.
    """
    at = _AT_LINE.search(error)
    lines = text.split("\n")
    if at is None or not 0 < int(at[1]) <= len(lines):
        return None
    match = _BARE.match(lines[int(at[1]) - 1][:LONGEST].lstrip())
    if match is None or not match[2].strip().isprintable():
        return None
    return f'line {at[1]}: text needs quotes: {match[1]} = "{match[2].strip()}"'
