"""How the JSON of `tpusmi kill` and `tpusmi clear` says which process it is about. Pure."""

from typing import Any

from tpusmi.model import Process


def identity(p: Process) -> dict[str, Any]:
    """Which process it is, whose, and what it runs."""
    return {
        "pid": p.pid,
        "start_ticks": p.key.start_ticks,
        "user": p.user,
        "uid": p.uid,
        "command": p.command,
    }
