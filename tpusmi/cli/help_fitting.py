"""The text before and after the options of a help, in lines as wide as the terminal. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FIRST_COLUMN = re.compile(r" +\S.*?  +(?=\S)")


def fitted(text: str, width: int) -> str:
    """The text in lines of that width.

    Lines that follow one another are one paragraph. An indented line stays a line; one of two
    columns, such as `  name    meaning`, continues below the second.
    """
    return "\n".join(_wrapped(part, width) for part in parts(text))


def parts(text: str) -> Iterator[str]:
    """Each paragraph as one line; blank and indented lines as they are."""
    paragraph: list[str] = []
    for line in (*text.splitlines(), ""):
        if line and not line[0].isspace():
            paragraph.append(line)
            continue
        if paragraph:
            yield " ".join(paragraph)
            paragraph = []
        yield line


def _wrapped(part: str, width: int) -> str:
    from textwrap import fill

    columns = _FIRST_COLUMN.match(part)
    if len(part) <= width or (part[:1].isspace() and columns is None):
        return part
    indent = " " * (columns.end() if columns and part[0].isspace() else 0)
    return fill(
        part, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
