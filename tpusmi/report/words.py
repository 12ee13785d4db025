"""Numbers as a person reads them. None becomes a dash, here and nowhere earlier."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpusmi import text
from tpusmi.model import NOMINAL, VIEWER, Value

UNKNOWN = "–"
_SOURCE_MARKS = {NOMINAL: "~", VIEWER: "≥"}
NOT_VERIFIED = "not verified"
"""Shown for a process that only a file names."""

FULL_RATIO, NEARLY_FULL_RATIO = 0.95, 0.80
"""Shares of the memory limit at which its color changes."""

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(value: float | None) -> str:
    """Bytes in the largest unit that leaves at least one: `12.3 MiB`."""
    if value is None:
        return UNKNOWN
    number, unit = scaled(value)
    return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"


def scaled(value: float) -> tuple[float, str]:
    """Bytes and the unit they are best read in."""
    number, rank = float(value), 0
    while number >= (1023.5 if rank == 0 else 1023.95) and rank < len(_SIZES) - 1:
        number /= 1024
        rank += 1
    return number, _SIZES[rank]


def size_pair(used: float | None, limit: float | None, nominal: bool = False) -> str:
    """Used and limit in the limit's unit: `7.5/15.8 GiB`, or `7.5/~16.0 GiB` when the limit is what
    the chip has by its name. A limit of 0 is unknown.
    """
    if not limit:
        return size(used)
    total, unit = scaled(limit)
    part = UNKNOWN if used is None else f"{used * total / limit:.1f}"
    return f"{part}/{'~' if nominal else ''}{total:.1f} {unit}"


def used_of_limit(used: Value | None, limit: Value | None) -> str:
    """The same of two values of a snapshot."""
    is_nominal = limit is not None and limit.source == NOMINAL
    return size_pair(used and used.value, limit and limit.value, is_nominal)


def source_mark(value: Value) -> str:
    """What stands before a value that no source measured: `~` where it is what the chip has by its
    name, `≥` where it is the most that this viewer has seen.
    """
    return _SOURCE_MARKS.get(value.source, "")


def command(line: str) -> str:
    """A command line without the directory of its program, which says little and takes much."""
    program, space, arguments = line.partition(" ")
    return program.rpartition("/")[2] + space + arguments


def shortened(line: str, most: int | None) -> str:
    """The line, or its beginning with an ellipsis where it is longer than that."""
    return line if most is None or len(line) <= most else line[: max(0, most - 1)] + "…"


def duration(value: float | None) -> str:
    """A measured time: `12.3 ms`, `4.20 s`, and from a minute on as `elapsed`."""
    return UNKNOWN if value is None else text.duration(value)


def elapsed(seconds: float | None) -> str:
    """How long something has run, or how long ago it was: `59s`, `2m05s`, `3h05m`, `12d03h`."""
    return UNKNOWN if seconds is None else text.elapsed(seconds)


def idle(value: float | None) -> str:
    """Time without work: below a millisecond there was none."""
    return "0 s" if value is not None and value < 1e-3 else duration(value)


def microseconds(value: float | None) -> str:
    """Microseconds as a duration."""
    return duration(None if value is None else value / 1e6)


def megabits(value: float | None) -> str:
    """Megabits per second, the larger in gigabits."""
    if value is None:
        return UNKNOWN
    return f"{value:.0f} Mbit/s" if value < 9999.5 else f"{value / 1e3:.1f} Gbit/s"


def percent(value: float | None) -> str:
    """Percent without decimals; one below ten. A little is not nothing: `<0.1 %`."""
    if value is None:
        return UNKNOWN
    if 0 < value < 0.05:
        return "<0.1 %"
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:.0f} %"


def rate(value: float | None) -> str:
    """A count per second with three digits."""
    if value is None:
        return UNKNOWN
    return f"{value:.2g}" if 0 < value < 0.1 else text.three_digits(value)


def count(value: float | None) -> str:
    """A count, thousands as `12.3k` from ten thousand on."""
    if value is None:
        return UNKNOWN
    if value < 9999.5:
        return f"{value:.0f}"
    for below, factor, unit in ((999_950, 1e3, "k"), (999_950_000, 1e6, "M")):
        if value < below:
            return f"{value / factor:.1f}{unit}"
    return f"{value / 1e9:.1f}G"


def flops(value: float | None) -> str:
    """Floating point operations per second: `1.23 TFLOP/s`."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0 FLOP/s"
    for below, factor, unit in ((1e6, 1e3, "k"), (1e9, 1e6, "M"), (1e12, 1e9, "G")):
        if value < 0.9995 * below:
            return f"{text.three_digits(value / factor)} {unit}FLOP/s"
    return f"{text.three_digits(value / 1e12)} TFLOP/s"


def reader(unit: str) -> Callable[[float | None], str]:
    """The format of values of that unit of a metric."""
    formats = {"bytes": size, "percent": percent, "s": duration, "us": microseconds, "1/s": rate}
    return formats.get(unit, count)


def local_time(rfc3339: str, format: str) -> str:
    """That moment in local time, in a format of strftime; the text itself when it is not a time."""
    from datetime import datetime

    try:
        # Python 3.10 does not read the Z.
        moment = datetime.fromisoformat(rfc3339.replace("Z", "+00:00"))
    except ValueError:
        return rfc3339
    return moment.astimezone().strftime(format)


def fullness(ratio: float) -> str:
    """How full a memory is, for its color: `low`, `near`, `full`."""
    if ratio >= FULL_RATIO:
        return "full"
    return "near" if ratio >= NEARLY_FULL_RATIO else "low"


def nodes(names: Sequence[str]) -> str:
    """Device nodes, those that differ in their number together: `/dev/vfio/0-7`."""
    groups: dict[str, list[int]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        groups.setdefault(stem, []).extend([int(name[len(stem) :])] if stem != name else [])
    return " ".join(stem + (ranges(numbers) if numbers else "") for stem, numbers in groups.items())


def ranges(numbers: list[int]) -> str:
    """Numbers as `0-3,8`; a dash for none."""
    return text.ranges(numbers) or UNKNOWN
