"""What a user may call an attribute of a snapshot, after other tools or the screen."""

from __future__ import annotations

from collections.abc import Collection

_GUESSES = {
    "hbm_used_bytes": "memory memory_used used_memory mem_used memory_usage gpu_memory",
    "hbm_limit_bytes": "memory_total total_memory memory_limit mem_total hbm_total hbm_size",
    "duty_cycle_percent": "utilization_gpu gpu_utilization gpu_util",
    "devices": "device gpus tpus",
    "processes": "jobs apps",
    "command": "cmd cmdline command_line name",
    "user": "username",
    "age_s": "started start_time create_time runtime running_time uptime elapsed",
    "steps_per_s": "rate step_rate steps_per_second",
    "step_time_s.p50": "p50 median step_time_median",
    "step_time_s.p95": "p95 step_time_p95",
    "step_time_s.mean": "mean",
    "process.user": "user username",
    "process.command": "command cmd cmdline",
    "process.phase": "phase state status",
    "process.steps": "steps",
    "process.steps_per_s": "steps_per_s rate step_rate",
    "process.step_time_s": "step_time step_time_s",
    "process.mfu_percent": "mfu mfu_percent",
}
"""By attribute, or the path to a part of one."""


def guessed(name: str, names: Collection[str]) -> str:
    """The attribute that the name stands for, or the path to it; empty if there is none here."""
    fitting = (path for path, guesses in _GUESSES.items() if name.lower() in guesses.split())
    return next((path for path in fitting if path.partition(".")[0] in names), "")
