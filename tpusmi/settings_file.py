"""Writes single settings into the user's TOML file, and leaves everything else in it as it is."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tpusmi.settings import LARGEST_BYTES, SettingsError, parsed, text_of
from tpusmi.text import clean
from tpusmi.toml_lines import Value, key_of, line_of, table_of, toml_value

Way = tuple[str, ...]
"""A key at the top of the file, or a table and a key in it."""
LONGEST_VALUE = 100
"""Lines that a value may have."""


def save(
    path: str, values: Mapping[Way, Value], defaults: Mapping[Way, Value] | None = None
) -> bool:
    """Write these settings; False if the file has them already. Raises SettingsError.

    A setting that is a default is not added to a file that does not have it.
    Comments, other settings and their order stay. The file is replaced in one step, so that a
    reader, or a full disk, never leaves half of it.
    """
    try:
        text = text_of(path) or ""
        before = parsed(text)
        usual = defaults or {}
        new = {w: v for w, v in values.items() if _at(before, w) is not None or v != usual.get(w)}
        changed = edited(text, new)
        if changed == text:
            return False
        replace_file(os.path.realpath(path), changed)
    except OSError as error:
        raise SettingsError(f"{clean(path)}: {error.strerror or 'cannot be written'}") from None
    except ValueError as error:
        raise SettingsError(f"{clean(path)}: {error}") from None
    return True


def edited(text: str, values: Mapping[Way, Value]) -> str:
    """The text of a file with these values in it. Raises ValueError if that cannot be done without
    a change to other parts: the result is parsed and compared.
    """
    before = parsed(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    for way, value in values.items():
        if _at(before, way) != value:
            _set(lines, way, value)
    changed = newline.join(lines)
    if len(changed.encode()) > LARGEST_BYTES:
        raise ValueError(f"larger than {LARGEST_BYTES // 1024} KiB")
    with suppress(ValueError):  # which would name a line of a file that is not there
        if parsed(changed) == _with(before, values):
            return changed
    raise ValueError("tpusmi cannot edit this file; see tpusmi --print-config")


def _at(table: Any, way: Way) -> object:
    for name in way:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _with(table: dict[str, Any], values: Mapping[Way, Value]) -> dict[str, Any]:
    """A copy of the table with those values."""
    copy = {name: dict(v) if isinstance(v, dict) else v for name, v in table.items()}
    for way, value in values.items():
        *tables, key = way
        inner = copy
        for name in tables:
            inner = inner.setdefault(name, {})
        inner[key] = value
    return copy


def _set(lines: list[str], way: Way, value: Value) -> None:
    """Put the value into the lines: in place of the old one, below the comment that has its
    default, at the end of its table, or in a new table.
    """
    line = f"{way[-1]} = {toml_value(value)}"
    n = line_of(lines, way)
    if n is not None:
        end = _end(lines, n)
        indent = lines[n][: -len(lines[n].lstrip())]
        lines[n:end] = [indent + line + _comment("\n".join(lines[n:end]))]
        return
    lines.insert(_place(lines, way), line)


def _end(lines: list[str], first: int) -> int:
    """Where the value that begins on that line ends: it may go on over several lines."""
    for end in range(first + 1, min(len(lines), first + LONGEST_VALUE) + 1):
        with suppress(ValueError):
            parsed("\n".join(lines[first:end]))
            return end
    return first + 1


def _comment(line: str) -> str:
    """The comment after a value, with the blanks before it; empty if there is none."""
    if "\n" in line:
        return ""
    for match in re.finditer(r"\s{0,20}#", line):
        with suppress(ValueError):
            if parsed(line[: match.start()]) == parsed(line):
                return line[match.start() :]
    return ""


def _place(lines: list[str], way: Way) -> int:
    """Where a new line goes. Adds the head of its table if there is none."""
    table = "" if len(way) == 1 else way[0]
    first, last = _section(lines, table)
    if first is None:
        while lines and not lines[-1].strip():
            lines.pop()
        lines += ["", f"[{table}]"] if lines else [f"[{table}]"]
        lines.append("")
        return len(lines) - 1
    for n in range(first, last):
        if lines[n].startswith("#") and key_of(lines[n].lstrip("# ")) == way[-1]:
            return n + 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return last


def _section(lines: list[str], table: str) -> tuple[int | None, int]:
    """The first line of a table's keys, and the line after its last; None without the table."""
    heads = [(n, name) for n, line in enumerate(lines) if (name := table_of(line)) is not None]
    first = 0 if not table else next((n + 1 for n, name in heads if name == table), None)
    after = (n for n, _ in heads if first is not None and n >= first)
    return first, next(after, len(lines))


def replace_file(path: str, text: str) -> None:
    """Replace a file in one step; the new one has owner and permissions of the old. Raises
    OSError, also for a file that its owner made read-only, or ValueError for a device or another
    special file, such as /dev/null.
    """
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    temporary = f"{path}.{os.getpid()}.new"
    mode, owner = 0o644, None
    with suppress(FileNotFoundError):
        before = os.lstat(path)
        if not stat.S_ISREG(before.st_mode):
            raise ValueError("not a regular file")
        if not os.access(path, os.W_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        mode, owner = stat.S_IMODE(before.st_mode), (before.st_uid, before.st_gid)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            if owner is not None and os.geteuid() == 0:  # of another user, under sudo
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
