"""What xprof prints for traces: figures of its pages, by a process of its own.

`python xprof_figures.py WHICH TRACE…` writes a line of JSON for each. It is xprof itself, and none
of our code: tests compare with it.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

LIMIT_S = 60.0


def xprof_figures(traces: Sequence[str]) -> list[dict[str, Any]]:
    """What xprof shows of each trace; it writes files of its own beside each."""
    return _printed("figures", traces)


def xprof_times(traces: Sequence[str]) -> list[dict[str, Any]]:
    """The same of the times of operations and steps."""
    return _printed("times", traces)


def _printed(which: str, traces: Sequence[str]) -> list[dict[str, Any]]:
    command = [sys.executable, __file__, which, *traces]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(which: str, traces: Sequence[str]) -> None:
    """Write them."""
    logging.disable(logging.CRITICAL)
    read = {"figures": _figures, "times": _times}[which]
    for trace in traces:
        sys.stdout.write(f"{json.dumps(read(trace))}\n")


def _figures(trace: str) -> dict[str, Any]:
    overview, roofline = _page(trace, "overview_page"), _page(trace, "roofline_model")
    analysis, steps = overview[0]["p"], overview[1]
    columns = [column["id"] for column in steps["cols"]]
    rows = [[cell["v"] for cell in row["c"]] for row in steps["rows"]]
    names = [column["id"] for column in roofline[0]["cols"]]
    whole = next(iter(roofline[0]["rows"]), {"c": []})["c"]
    total = {name: cell["v"] for name, cell in zip(names, whole, strict=False)}
    programs = _page(trace, "op_profile").get("byProgram", {}).get("children", ())
    return {
        "duty": _percent(analysis["device_duty_cycle_percent"]),
        "idle": _percent(analysis["device_idle_time_percent"]),
        "mxu": _percent(analysis["mxu_utilization_percent"]),
        "infeed": float(steps["p"]["infeed_percent_average"]),
        "device_type": overview[2]["p"]["device_type"],
        "warnings": [row["c"][-1]["v"] for row in overview[-1]["rows"]],
        "steps_ms": [sum(_numbers(dict(zip(columns, row, strict=True)))) for row in rows],
        "flops_per_s": 1e9 * float(total.get("measured_flop_rate", 0)),
        "hbm_gib_per_s": float(total.get("hbm_bw", 0)),
        "categories_s": {
            category["name"]: category["metrics"]["rawTime"] / 1e12
            for program in programs
            for category in program.get("children", ())
        },
        "programs": [program["name"] for program in programs],
    }


def _times(trace: str) -> dict[str, Any]:
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


def _numbers(row: dict[str, Any]) -> list[float]:
    return [float(value) for name, value in row.items() if name.endswith("TimeMs")]


def _percent(text: str) -> float:
    return float(text.removesuffix("%"))


def _page(trace: str, tool: str) -> Any:
    from xprof.convert import raw_to_tool_data

    return json.loads(raw_to_tool_data.xspace_to_tool_data([trace], tool, {})[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
