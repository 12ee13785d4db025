"""The part of the JSON Schema that is about holders: the verdict, the kernel's word, the nodes."""

from __future__ import annotations

from tpusmi.model import LockState
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
    """Whether a holder is stale, and why; null of other processes."""
    return {
        "stale": said(
            or_null(TRUTH),
            "True for a holder that will not do work again; null where `verdict` is not certain.",
        ),
        "verdict": {"enum": ["stale", "maybe", "unknown", "not_stale", None]},
        "stale_code": said(
            or_null(TEXT), "The sign that the verdict rests on: `orphaned`, `idle`, …"
        ),
        "stale_reason": said(or_null(TEXT), "Why the verdict is what it is."),
        "signs": a_list(
            an_object({"code": TEXT, "message": TEXT}),
            "What speaks for its being stale, the weightiest first.",
        ),
    }


def life() -> Schema:
    """What the kernel says of a holder; null of other processes."""
    return {
        "os_state": said(or_null(TEXT), "Of its main thread: R, S, D, Z; T and t: stopped."),
        "parent_pid": or_null(WHOLE),
        "process_group": or_null(WHOLE),
        "session": or_null(WHOLE),
        "age_s": said(or_null(NUMBER), "Since it was started."),
        "threads": or_null(WHOLE),
        "terminal": said(or_null(TEXT), "`pts/0`. Not asked by `tpusmi --json`."),
        "cpu_percent": said(or_null(NUMBER), "Of one core. Not asked by `tpusmi --json`."),
        "rss_bytes": said(or_null(WHOLE), "Memory of the host. Not asked by `tpusmi --json`."),
        "cwd": said(or_null(TEXT), "Not asked by `tpusmi --json`."),
        "container_id": said(or_null(TEXT), "Of the container that it runs in."),
        "inner_pid": said(or_null(WHOLE), "Its pid in there."),
        "role": said(or_null(TEXT), "In its job: `resource tracker`, `spawned worker`."),
        "listens_on": a_list(WHOLE, "TCP ports."),
    }


def holding() -> Schema:
    """Whether the TPU is free, by node, and what could not be seen."""
    node = {
        "node": TEXT,
        "chip": or_null(WHOLE),
        "state": {"enum": ["free", "no_permission", "held", "stale", "releasing", "not_visible"]},
        "pids": a_list(WHOLE, "Every process that holds it."),
    }
    lock_file = {
        "path": TEXT,
        "state": {"enum": list(LockState)},
        "owner": or_null(TEXT),
        "pids": a_list(WHOLE, "Who locks it, or has the deleted one open."),
        "message": TEXT,
    }
    return {
        "status": {
            "enum": [
                *("free", "no_permission", "held", "stale", "not_visible"),
                *("no_node", "no_tpu"),
            ]
        },
        "nodes": a_list(an_object(node), "Every device node of a TPU."),
        "not_inspected": said(WHOLE, "Processes that may hold one and could not be looked at."),
        "own_pid_namespace": said(TRUTH, "Only processes of this container can be seen."),
        "lock_files": a_list(an_object(lock_file), "libtpu's lock file."),
    }
