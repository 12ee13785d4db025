"""The JSON Schema of a holder: its verdict, what the kernel reports, and the nodes."""

from __future__ import annotations

from tpusmi.model import Holding, LockState, Verdict
from tpusmi.report.shapes import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Schema,
    a_list,
    an_object,
    or_null,
    said,
)


def verdict() -> Schema:
    """Whether a holder is stale, and why; null for other processes."""
    return {
        "stale": said(
            or_null(TRUTH),
            "True for a holder that will not do work again; null where `verdict` is not certain.",
        ),
        "verdict": {"enum": [*Verdict, None]},
        "stale_code": said(
            or_null(TEXT), "The sign that the verdict rests on: `orphaned`, `idle`, …"
        ),
        "stale_reason": said(or_null(TEXT), "Why the verdict is what it is."),
        "signs": a_list(
            an_object({"code": TEXT, "message": TEXT}),
            "Signs that it may be stale, the strongest first.",
        ),
    }


def life() -> Schema:
    """What the kernel reports about a holder; null for other processes."""
    return {
        "os_state": said(or_null(TEXT), "State of its main thread: R, S, D, Z; T and t: stopped."),
        "parent_pid": or_null(WHOLE),
        "process_group": or_null(WHOLE),
        "session": or_null(WHOLE),
        "age_s": said(or_null(NUMBER), "Time since it was started."),
        "threads": or_null(WHOLE),
        "terminal": said(or_null(TEXT), "`pts/0`. Null in `tpusmi --json`."),
        "cpu_percent": said(or_null(NUMBER), "Percent of one core. Null in `tpusmi --json`."),
        "rss_bytes": said(or_null(WHOLE), "Host memory. Null in `tpusmi --json`."),
        "cwd": said(or_null(TEXT), "Working directory. Null in `tpusmi --json`."),
        "container_id": said(or_null(TEXT), "Id of its container."),
        "inner_pid": said(or_null(WHOLE), "Its pid in its container."),
        "role": said(or_null(TEXT), "Its role in the job: `resource tracker`, `spawned worker`."),
        "listens_on": a_list(WHOLE, "TCP ports on which it listens."),
    }


def holding() -> Schema:
    """Whether the TPU is free, by node, and how much could not be seen."""
    node = {
        "node": TEXT,
        "chip": or_null(WHOLE),
        "state": {"enum": [h for h in Holding if h not in (Holding.NO_NODE, Holding.NO_TPU)]},
        "pids": a_list(WHOLE, "Every process that holds the node."),
    }
    lock_file = {
        "path": TEXT,
        "state": {"enum": list(LockState)},
        "owner": or_null(TEXT),
        "pids": a_list(WHOLE, "Processes that lock it, or have the deleted file open."),
        "message": TEXT,
    }
    return {
        "status": {"enum": [h for h in Holding if h != Holding.RELEASING]},
        "nodes": a_list(an_object(node), "Every device node of a TPU."),
        "not_inspected": said(WHOLE, "Processes that may hold a node and could not be inspected."),
        "own_pid_namespace": said(TRUTH, "Only processes of this container can be seen."),
        "lock_files": a_list(an_object(lock_file), "libtpu's lock file."),
    }
