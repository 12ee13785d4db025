"""Times of operations and steps as xprof prints them, by a process of its own.

`python xprof_op_profiles.py TRACE…` writes a line of JSON for each. It is xprof itself, and none of
our code: tests compare with it.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

LIMIT_S = 60.0


def xprof_op_profiles(traces: Sequence[str]) -> list[dict[str, Any]]:
    """What xprof shows of each trace; it writes files of its own beside each."""
    command = [sys.executable, __file__, *traces]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(traces: Sequence[str]) -> None:
    """Write them."""
    logging.disable(logging.CRITICAL)
    for trace in traces:
        sys.stdout.write(f"{json.dumps(_profile(trace))}\n")


def _profile(trace: str) -> dict[str, Any]:
    root = _page(trace, "op_profile")["byProgram"]
    programs = root.get("children", ())
    overview = _page(trace, "overview_page")
    steps = overview[1]["rows"]
    return {
        "all": root["metrics"],
        "idle_s": sum(p["metrics"]["rawTime"] for p in programs if p["name"] == "IDLE") / 1e12,
        "operations": {
            operation["name"]: operation["metrics"]
            for program in programs
            for category in program.get("children", ())
            for group in category.get("children", ())
            for operation in _alone(group)
        },
        "duty": overview[0]["p"].get("device_duty_cycle_percent"),
        "steps": [[cell["v"] for cell in row["c"]] for row in steps],
    }


def _alone(group: dict[str, Any]) -> list[dict[str, Any]]:
    """The operation, or those in a group of `fusion.1 and its duplicate(s)`."""
    return group["children"] if " and its duplicate" in group["name"] else [group]


def _page(trace: str, tool: str) -> Any:
    from xprof.convert import raw_to_tool_data

    return json.loads(raw_to_tool_data.xspace_to_tool_data([trace], tool, {})[0])


if __name__ == "__main__":
    main(sys.argv[1:])
