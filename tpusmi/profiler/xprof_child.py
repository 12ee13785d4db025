"""Reads xprof's pages of one trace in a process of its own, since its native code can hang, crash,
print anything and take all memory.

A line with a JSON object asks, a line with a JSON object answers. A guard forks the worker that
runs xprof, watches its memory, and removes their folder if the program that started them is gone.
Run by path, importing nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import shutil
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIFELINE = 3
"""The descriptor of a pipe into which the program never writes: it ends when the program does."""
LOOK_EVERY_MS = 30
REQUEST_BYTES_MOST = 65536
PAGES = (
    "overview_page",
    "input_pipeline_analyzer",
    "op_profile",
    "hlo_stats",
    "roofline_model",
    "memory_profile",
)
"""xprof's names of the pages that are read. Its trace viewer would cost more than all of them."""
MODULE = "xprof.convert.raw_to_tool_data"
ROWS_MOST, MEMBERS_MOST = 2000, 2000
"""In one table. xprof puts the operations with the most time first."""
TEXT_MOST = 800
COLUMNS_LEFT_OUT = ("source_stack", "cumulative_total_self_time_percent", "dma_stall_percent")
PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def main() -> None:
    """Answer one request."""
    leave_no_trace()
    request = json.loads(read_request())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    ended, alive = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(ended)
        try:
            work(request)
        finally:
            os._exit(1)
    os.close(alive)
    reason = watch(worker, ended, request)
    if reason:
        os.write(1, b"\n" + json.dumps({"error": reason}).encode() + b"\n")


def read_request() -> bytes:
    """The line that asks; ends this process if the program ends first."""
    line = b""
    while not line.endswith(b"\n") and len(line) < REQUEST_BYTES_MOST:
        ready, _, _ = select.select([0, LIFELINE], [], [])
        chunk = b"" if LIFELINE in ready else os.read(0, REQUEST_BYTES_MOST)
        if not chunk:
            os._exit(1)
        line += chunk
    return line


def leave_no_trace() -> None:
    """Import nothing from here or from the current directory, dump no core, and use no proxy."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    try:
        away = {os.path.realpath(os.getcwd())}
    except OSError:  # it has been removed
        os.chdir("/")
        away = set()
    away -= {path for path in map(os.path.realpath, sys.path) if "-packages" in path}
    away.add(os.path.dirname(os.path.realpath(__file__)))  # has an xprof.py, also where installed
    paths = [os.path.abspath(path) for path in sys.path if path]
    sys.path[:] = [path for path in paths if os.path.realpath(path) not in away]
    os.chdir("/")


# The guard.


def watch(worker: int, ended: int, request: dict[str, Any]) -> str:
    """Wait for the worker: what it has exceeded, or empty. It runs no longer afterwards."""
    events = select.poll()
    events.register(LIFELINE, 0)
    events.register(ended, 0)
    while not events.poll(LOOK_EVERY_MS):
        excess = ""
        if resident_bytes(worker) > request["memory_most"]:
            excess = "memory"
        elif folder_bytes(request["folder"]) > request["disk_most"]:
            excess = "disk"
        if excess:
            end(worker)
            return excess
    is_orphan = bool(select.select([LIFELINE], [], [], 0)[0])
    status = end(worker) if is_orphan else os.waitpid(worker, 0)[1]
    if is_orphan:
        shutil.rmtree(request["folder"], ignore_errors=True)
        os._exit(1)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "disk" if number == signal.SIGXFSZ else f"crashed (signal {number})"
    code = os.WEXITSTATUS(status)
    return f"ended (exit code {code})" if code else ""


def end(worker: int) -> int:
    """Kill the worker and wait until it is gone: its status."""
    os.kill(worker, signal.SIGKILL)
    return os.waitpid(worker, 0)[1]


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM or swapped out; 0 once it has ended."""
    kib = 0
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith(("VmRSS:", "VmSwap:")):
                    kib += int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return kib * 1024


def folder_bytes(folder: str) -> int:
    """Size of the files in a folder, without those that links lead to."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                pass  # removed meanwhile
    return total


# The worker.


def work(request: dict[str, Any]) -> None:
    """Answer the request, in a process of its own."""
    die_with_the_program()
    answers = os.dup(1)
    os.dup2(2, 1)  # C++ prints there
    stay_small(request)
    answer = read(request)
    data = memoryview(json.dumps(answer).encode() + b"\n")
    while data:
        data = data[os.write(answers, data) :]
    os._exit(0)  # without the destructors of a library that may be broken


def die_with_the_program() -> None:
    """Have the kernel kill this process when the program ends, even while a library hangs."""
    import fcntl

    fcntl.fcntl(LIFELINE, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(LIFELINE, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(LIFELINE, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if select.select([LIFELINE], [], [], 0)[0]:  # it ended before we listened
        os._exit(1)


def stay_small(request: dict[str, Any]) -> None:
    """Keep out of the way of the jobs on this host: files, processor, memory, network."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]  # -1: unlimited
    most = min(size for size in (request["disk_most"], hard) if size >= 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
    os.environ["TMPDIR"] = request["folder"]
    os.nice(10)
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")  # if memory runs out, this process goes first
    except OSError:
        pass
    leave_the_network()


def leave_the_network() -> None:
    """Move to a network of its own, which has nothing in it, where the kernel allows that."""
    import ctypes

    try:
        unshare = ctypes.CDLL(None).unshare
    except (OSError, AttributeError):
        return
    # Root would lose the right to read files of others in a user namespace of its own.
    if unshare(CLONE_NEWNET) and os.geteuid():
        unshare(CLONE_NEWUSER | CLONE_NEWNET)


def read(request: dict[str, Any]) -> dict[str, Any]:
    """The pages, as far as xprof has them."""
    answer: dict[str, Any] = {"pages": {}, "errors": {}}
    try:
        convert = importlib.import_module(MODULE)
    except Exception as error:  # noqa: BLE001  # whatever a foreign library raises is data
        answer["error"] = unusable(error)
        answer["errors"]["import"] = described(error)
        return answer
    for name in PAGES:
        try:
            data, _ = convert.xspace_to_tool_data([request["trace"]], name, {})
            if data:
                answer["pages"][name] = trimmed(name, json.loads(data))
        except Exception as error:  # noqa: BLE001  # whatever a foreign library raises is data
            answer["errors"][name] = described(error)
    return answer


def unusable(error: Exception) -> str:
    """`absent` without xprof, `old` if this one lacks the module or is only its forerunner, and
    `import` if it does not load.
    """
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if name == "xprof":
        from importlib.util import find_spec

        return "old" if find_spec("tensorboard_plugin_profile") else "absent"
    return "old" if name and MODULE.startswith(name) else "import"


def described(error: Exception) -> str:
    """An exception as one short text."""
    return f"{type(error).__name__}: {error}"[:300]


def trimmed(name: str, page: Any) -> Any:
    """The page with the parts that are read."""
    if name == "memory_profile":
        allocators = list(page["memoryProfilePerAllocator"].items())[:MEMBERS_MOST]
        summaries = {
            key[:TEXT_MOST]: {"profileSummary": v["profileSummary"]} for key, v in allocators
        }
        return {"memoryProfilePerAllocator": summaries}
    if name == "op_profile":
        root = page["byProgram"]
        children = [
            {"name": str(child["name"])[:TEXT_MOST], "metrics": child["metrics"]}
            for child in root["children"][:MEMBERS_MOST]
        ]
        by_program = {"metrics": root["metrics"], "children": children}
        return {"byProgram": by_program, "deviceType": page.get("deviceType")}
    tables = page if isinstance(page, list) else [page]
    return [trimmed_table(name, table) for table in tables if isinstance(table, dict)]


def trimmed_table(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """A table without columns, rows and characters that are not read."""
    columns = [str(column["id"]) for column in table.get("cols", [])]
    kept = [i for i, column in enumerate(columns) if column not in COLUMNS_LEFT_OUT]
    rows = table.get("rows", [])
    if name == "roofline_model":  # its rows of operations are those of hlo_stats
        at = columns.index("operation") if "operation" in columns else -1
        rows = [row for row in rows if at < 0 or row["c"][at]["v"] == "Program"]
    return {
        "cols": [{"id": columns[i][:TEXT_MOST]} for i in kept],
        "rows": [
            {"c": [trimmed_cell(cell) for i, cell in enumerate(row["c"]) if i in kept]}
            for row in rows[:ROWS_MOST]
        ],
        "p": {key: trimmed_cell({"v": v})["v"] for key, v in (table.get("p") or {}).items()},
    }


def trimmed_cell(cell: Any) -> dict[str, Any]:
    """A cell with a short text, or a number."""
    value = cell.get("v") if isinstance(cell, dict) else None
    return {"v": value[:TEXT_MOST] if isinstance(value, str) else value}


if __name__ == "__main__":
    main()
