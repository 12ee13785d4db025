"""Numbers as a person reads them, in few and steady columns."""

from __future__ import annotations

from collections.abc import Iterable

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def scaled(value: float) -> tuple[float, str]:
    """A number of bytes in the largest unit that keeps it at 1 or more."""
    index = 0
    while value >= 999.5 and index < len(_UNITS) - 1:
        value /= 1024
        index += 1
    return value, _UNITS[index]


def in_bytes(value: float) -> str:
    """`9.81 GiB`, `512 B`: three digits and the unit."""
    number, unit = scaled(value)
    return f"{_three(number) if unit != 'B' else round(number)} {unit}"


def used_of(used: float, limit: float) -> str:
    """`9.8/15.8 GiB`: both in the unit of the limit."""
    number, unit = scaled(limit)
    part = used / (limit / number) if number else 0.0
    return f"{part:.1f}/{number:.1f} {unit}"


def in_seconds(value: float) -> str:
    """`81.2 ms`, `1.25 s`, `12 min`: three digits and the unit."""
    if value < 0.9995e-3:
        return f"{_three(value * 1e6)} µs"
    if value < 0.9995:
        return f"{_three(value * 1e3)} ms"
    return f"{_three(value)} s" if value < 600 else f"{value / 60:.0f} min"


def in_rate(value: float) -> str:
    """`12.3`, `0.05`: three digits."""
    return _three(value)


def in_count(value: float) -> str:
    """`42`, `12,345`, `1.23M`."""
    if value < 99_999.5:
        return f"{value:,.0f}"
    return f"{value / 1e3:.0f}k" if value < 999_500 else f"{_three(value / 1e6)}M"


def in_percent(value: float) -> str:
    """`87%`."""
    return f"{value:.0f}%"


def age(seconds: float) -> str:
    """`0s`, `59s`, `59m`, `23h`, `9d`: how long ago."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def ranges(numbers: Iterable[int]) -> str:
    """`0-3,6`: sorted numbers with runs joined."""
    runs: list[list[int]] = []
    for n in sorted(set(numbers)):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _three(number: float) -> str:
    """Three digits: 1.23, 12.3, 123."""
    if number >= 99.95:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"
