"""Words of nvidia-smi, nvitop, gpustat, nvtop and tpu-info, and what does the same in tpusmi."""

from __future__ import annotations

_NO_SETTING = "a TPU has no such setting"
_NO_POWER = "no TPU reports power, fans or clocks"
_IN_TABLE = "the table shows user, pid and command without it"

OPTIONS = {
    ("-x", "--xml-format"): "there is no XML; --json prints everything as JSON",
    ("-f", "--filename", "--output"): "redirect the output: tpusmi ... > FILE",
    ("-o",): "-ov or --id 0,1 chooses devices; > FILE writes to a file",
    ("-r", "--gpu-reset"): "no TPU can be reset; tpusmi kill --stale ends what holds it",
    ("--metric", "--filter"):
        "--query-tpu=memory.used,utilization.gpu --format=csv prints values, and "
        "--help-query-tpu lists their names",
    ("--process",): "tpusmi ps shows which processes hold the chips",
    ("-c", "-a", "--show-all", "--show-cmd", "--show-user", "--show-pid", "--show-full-cmd"):
        _IN_TABLE,
    ("-P", "--show-power", "--show-fan-speed", "--show-codec", "-F"): _NO_POWER,
    ("-pm", "--persistence-mode", "-e", "--ecc-config", "--compute-mode", "-mig",
     "--multi-instance-gpu", "-am", "--accounting-mode"): _NO_SETTING,
    ("-pl", "--power-limit", "-ac", "--applications-clocks", "-rac", "-lgc", "--lock-gpu-clocks",
     "-rgc", "-lmc", "--lock-memory-clocks", "-rmc"): _NO_SETTING,
    ("--gpu-util-thresh", "--mem-util-thresh"):
        "the thresholds of the colors are fixed; the settings file has the colors themselves, see "
        "--print-config",
    ("--service_addr", "--workers_list", "--monitoring_level", "--num_queries", "--logdir",
     "--num_tracing_attempts", "--include_dataset_ops", "--display_timestamp", "--tpu_zone",
     "--gcp_project", "--tpu"):
        "tpusmi capture_tpu_profile takes it, and tpusmi profile HOST:PORT is the same",
    ("--delay", "--refresh"): "--interval SECONDS sets how often the dashboard refreshes",
}  # fmt: skip

COMMANDS = {
    ("snapshot", "show", "query"): "tpusmi -1 prints one table, and tpusmi --json everything",
    ("top", "view", "local", "watch", "monitor"): "tpusmi without a command shows the dashboard",
    ("list", "ls", "devices"): "tpusmi -L lists the devices",
    ("free", "status", "holders"): "tpusmi ps shows whether the TPU is free, and what holds it",
    ("doctor", "debug"): "tpusmi -1 --strict says which source failed; tpusmi ps checks the nodes",
    ("trace", "capture", "xprof", "xprofiler", "tensorboard", "prof", "profiler", "nsys", "ncu"):
        "tpusmi profile captures a trace of a job, and --save keeps it for TensorBoard and xprof",
    ("nvlink", "mig", "vgpu", "compute-policy", "boost-slider", "power-hint", "drain", "stats",
     "daemon", "replay", "encodersessions", "fbcsessions", "accounting"):
        "a TPU has nothing like it",
    ("help",): "tpusmi --help lists the commands and options",
    ("version",): "tpusmi --version",
}  # fmt: skip


def option_hint(word: str) -> str:
    """What to write in place of an option of another tool; empty for other words."""
    hint = next((hint for words, hint in OPTIONS.items() if word in words), "")
    return f"tpusmi has no {word}: {hint}" if hint else ""


def command_hint(word: str) -> str:
    """What to write in place of a command of another tool; empty for other words."""
    return next((hint for words, hint in COMMANDS.items() if word in words), "")
