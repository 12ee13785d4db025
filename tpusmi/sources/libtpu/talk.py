"""What libtpu printed beside its answers, as a cause in one sentence. Pure."""

from __future__ import annotations

import re

from tpusmi.text import clean

MESSAGE_MOST = 200
_LOG_LINE = r"[IWEF][0-9]{4} [0-9:. ]+\S+:[0-9]+\] "
_NOISE = r"\s*(?:Could not open|===|\*\*\*|@ |PC: |\S+\.cc:[0-9]+$|WARNING: Logging before)|\s*$"


def why_empty(talk: list[str]) -> str:
    """What libtpu said of a request of its own that failed; empty when it said nothing."""
    for line in reversed(talk):
        _, is_told, cause = line.partition("Failed to get metric values: ")
        if is_told:
            return clean(
                cause.rpartition("last error: ")[2].removeprefix("UNKNOWN: "), MESSAGE_MOST
            )
    return ""


def last_words(talk: list[str]) -> str:
    """The line that best says why it ended: a fatal one, else the last that says anything."""
    told = [line[:1024] for line in talk if not re.match(_NOISE, line[:1024])]
    fatal = [line for line in told if re.match(r"F[0-9]{4} ", line)]
    line = (fatal or told or [""])[-1]
    prefix = re.match(_LOG_LINE, line)
    return clean(line[prefix.end() :] if prefix else line, MESSAGE_MOST)
