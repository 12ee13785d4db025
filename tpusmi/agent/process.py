"""The process the agent lives in: how it was started, what it is, and whether it missed the TPU."""

from __future__ import annotations

import sys

from tpusmi.agent import jaxread
from tpusmi.text import clean, without_secrets

COMMAND_MOST_BYTES, ARGUMENT_MOST = 3000, 200
"""Of the command line in the facts, whose place in the segment is small."""


def command() -> list[str]:
    """How the process was started, secrets hidden, cut to fit; sys.argv where /proc hides it."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            raw = file.read(65536).rstrip(b"\0").split(b"\0")
        argv = [w.decode("utf-8", "replace") for w in raw]
    except OSError:
        argv = sys.argv
    words, left = [], COMMAND_MOST_BYTES
    for word in without_secrets(argv):
        word = clean(word, ARGUMENT_MOST)
        left -= len(word.encode("utf-8", "replace")) + 4
        if left < 0:
            break
        words.append(word)
    return words


def is_helper(argv: list[str]) -> bool:
    """True in a worker of multiprocessing: it runs the user's main again and may never touch JAX.

    While it imports that main, only its command line tells.
    """
    if "--multiprocessing-fork" in argv or any("multiprocessing.forkserver" in w for w in argv):
        return True
    # A module that another thread is importing right now has not all its names yet.
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    return parent is not None and parent() is not None


def fallback_warning(platform: str | None) -> list[dict[str, str]]:
    """The classic silent failure: the machine has TPUs and the job runs on the CPU."""
    chips = jaxread.tpu_functions() if platform == "cpu" else 0
    if not chips:
        return []
    found = f"{chips} TPU function{'s' if chips > 1 else ''} on the PCI bus"
    return [{"code": "cpu_fallback", "message": f"JAX runs on the CPU although there is {found}"}]
