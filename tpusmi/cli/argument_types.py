"""The types of arguments, for all commands: numbers, chips, times, filters."""

from __future__ import annotations

from argparse import ArgumentTypeError


def words(text: str) -> list[str]:
    """The words of a comma-separated list. Raises ArgumentTypeError when it is empty."""
    parts = [word.strip() for word in text.split(",") if word.strip()]
    if not parts:
        raise ArgumentTypeError("is empty")
    return parts


DIGITS_MOST = 9
"""Digits of a pid or an index."""


def numbers(text: str) -> list[int]:
    """The numbers of a comma-separated list. Raises ArgumentTypeError."""
    parts = words(text)
    if not all(word.isascii() and word.isdigit() for word in parts):
        raise ArgumentTypeError(f"{text} is not a comma-separated list of numbers")
    if longest := next((word for word in parts if len(word) > DIGITS_MOST), ""):
        raise ArgumentTypeError(f"{longest[:20]}{longest[20:] and '…'} is too large")
    return [int(word) for word in parts]


CHIPS_MOST = 4096
"""How many chips a list of ranges may name."""


def chips(text: str) -> list[int]:
    """The chips of a list such as `0,2-5`. Raises ArgumentTypeError."""
    from tpusmi.text import span  # here, because --version does not need it

    chosen: list[int] = []
    for word in words(text):
        ends = span(word)
        if ends is None or word.endswith("-"):
            raise ArgumentTypeError(f"{text} is not a list of chips such as 0,2-5")
        first, last = ends
        if last < first:
            raise ArgumentTypeError(f"{word} ends before it begins")
        if last - first + len(chosen) >= CHIPS_MOST:
            raise ArgumentTypeError(f"{text} names more than {CHIPS_MOST} chips")
        chosen += range(first, last + 1)
    return chosen


def ports(text: str) -> list[int]:
    """The ports in a list such as `8431,9000`. Raises ArgumentTypeError."""
    from tpusmi.sources.libtpu.ports import NAMED_MOST, NEVER

    chosen = numbers(text)
    for port in chosen:
        if not 0 < port < 65536:
            raise ArgumentTypeError(f"{port} is not a port")
        if port in NEVER:
            raise ArgumentTypeError(f"port {port} is that of another service of a TPU host")
    if len(chosen) > NAMED_MOST:
        raise ArgumentTypeError(f"{len(chosen)} ports are more than {NAMED_MOST}")
    return chosen


ONLY = ("user", "pid", "chip", "id", "text")


def only(text: str) -> tuple[str, list[str]]:
    """A kind of filter, and the names to keep. Raises ArgumentTypeError."""
    kind, equals, which = text.partition("=")
    if not equals or kind not in ONLY:
        raise ArgumentTypeError(f"takes {'=, '.join(ONLY)}=; got {text}")
    if kind == "text":
        _check_filter(which)
    if kind == "text" or (kind == "user" and not which):  # user= selects all users
        return kind, [which]
    if kind in ("pid", "chip"):
        listed = numbers(which) if kind == "pid" else chips(which)
        return kind, [str(number) for number in listed]
    return kind, words(which)


def _check_filter(text: str) -> None:
    from tpusmi.report.filters import problem  # here, because most commands have no filter

    if wrong := problem(text):
        raise ArgumentTypeError(wrong)


def setting(name: str, text: str) -> str:
    """The value of a setting. Raises ArgumentTypeError."""
    from tpusmi.settings import checked

    try:
        return str(checked(name, text))
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """A time to wait, in seconds. Raises ArgumentTypeError."""
    from tpusmi.settings import checked  # here, because --version does not need it

    try:
        return float(checked("interval", number(text, "seconds")))
    except ValueError as error:
        raise ArgumentTypeError(f"{text} is {error}") from None


def period(text: str) -> float:
    """The period of a loop, in seconds. Raises ArgumentTypeError: `-lms500` is `-l` and `ms500`."""
    if text.startswith("ms") and text[2:].isdigit():
        raise ArgumentTypeError(f"to loop in milliseconds, write -lms {text[2:]}")
    return seconds(text)


def interval(text: str) -> float:
    """A refresh interval, in seconds. Raises ArgumentTypeError: nvidia-smi's `-i` has devices."""
    try:
        return seconds(text)
    except ArgumentTypeError as error:
        is_device = text.replace(",", "").isdigit() or text.startswith(("GPU-", "TPU-", "0000"))
        hint = f"; to choose devices, write --id {text}" if is_device else ""
        raise ArgumentTypeError(f"{error}{hint}") from None


def past_time(text: str) -> float:
    """A time in the past, as Unix time. Raises ArgumentTypeError."""
    from tpusmi.cli.past_times import unix_time  # here, because most commands have none

    try:
        return unix_time(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    """How many times to do something, at least once. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and text.strip("0")):
        raise ArgumentTypeError(f"{text} is not a whole number from 1 up")
    if len(text) > DIGITS_MOST:
        raise ArgumentTypeError(f"{text[:20]}{text[20:] and '…'} is too large")
    return int(text)


def milliseconds(text: str) -> float:
    """A time in milliseconds, as seconds. Raises ArgumentTypeError."""
    from tpusmi.setting_checks import INTERVAL_LEAST_S, INTERVAL_MOST_S

    value_s = number(text, "milliseconds") / 1000
    if not INTERVAL_LEAST_S <= value_s <= INTERVAL_MOST_S:
        least, most = 1000 * INTERVAL_LEAST_S, 1000 * INTERVAL_MOST_S
        raise ArgumentTypeError(f"{text} ms is not between {least:.0f} and {most:.0f} ms")
    return value_s


def number(text: str, unit: str) -> float:
    """A number of some unit. Raises ArgumentTypeError."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a number of {unit}") from None
