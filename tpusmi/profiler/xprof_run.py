"""Runs xprof on one trace, in a child process and a private directory: its pages, or a sentence."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tpusmi.interpreter import this_python
from tpusmi.model import Host
from tpusmi.profiler.private_folder import private_folder
from tpusmi.sources.child_process import ChildProcess
from tpusmi.sources.host_facts import host_facts
from tpusmi.text import clean
from tpusmi.trace.limits import MIB, TraceLimits
from tpusmi.trace.plain_objects import json_in
from tpusmi.trace.troubles import CaptureError
from tpusmi.wire.capture_files import TRACE_NAME

ANSWER_BYTES_MOST = 16 * MIB
DISK_MOST = 1024 * MIB
"""For all that xprof writes beside its link to the trace."""
REASON_MOST = 200
NOT_INSTALLED = "xprof is not installed: pip install 'tpusmi[profile]'"
TOO_OLD = "xprof is too old: pip install -U 'tpusmi[profile]'"
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "xprof_child.py")


class XprofPages(NamedTuple):
    """What xprof made of a trace."""

    pages: Mapping[str, Any]
    """By xprof's names, as JSON; empty when it failed."""
    failure: str
    """Why there are no pages, or not all: a sentence. Empty when they are all here."""


def pages_of(path: str, limits: TraceLimits, command: Sequence[str] = ()) -> XprofPages:
    """xprof's pages of that trace. `command` replaces the child in tests.

    It raises nothing of its own, and leaves no process and no file behind.
    """
    limits = _modest(limits)
    try:
        _check(path, limits)
        command = command or (this_python(), _CHILD)
        with private_folder() as folder:
            link = os.path.join(folder, TRACE_NAME)
            os.symlink(os.path.abspath(path), link)
            return _answer(_line(command, link, limits), limits)
    except OSError as error:
        return _failed(f"xprof could not be started: {error.strerror or error}")
    except (CaptureError, ValueError) as error:
        return _failed(str(error))


def _modest(limits: TraceLimits) -> TraceLimits:
    """At most half of the memory that this host has left: jobs run on it."""
    available = host_facts(Host()).memory_available_bytes
    if available is None:
        return limits
    return limits._replace(memory_most=min(limits.memory_most, available // 2))


def _check(path: str, limits: TraceLimits) -> None:
    """Raise ValueError if the file is nothing that xprof could read in the limits."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise ValueError(f"xprof was not asked: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("xprof reads files only")
    if status.st_size > limits.bytes_most:
        size, most = status.st_size // MIB, limits.bytes_most // MIB
        raise ValueError(f"xprof was not asked: the trace has {size} MiB, more than {most} MiB")
    if not limits.left_s:
        raise ValueError("xprof was not asked: no time was left")


def _line(command: Sequence[str], link: str, limits: TraceLimits) -> bytes:
    """The answer of the child. Raises ValueError with the reason why there is none."""
    begun_s = time.monotonic()
    request = {
        "trace": link,
        "folder": os.path.dirname(link),
        "memory_most": limits.memory_most,
        "disk_most": DISK_MOST,
    }
    child = ChildProcess(command, ANSWER_BYTES_MOST)
    try:
        child.ask(json.dumps(request).encode() + b"\n")
        line = child.listen(limits.until_s)
        while line is not None and not line.startswith(b"{"):  # what an environment prints
            line = child.listen(limits.until_s)
    finally:
        child.close()
    if line is not None:
        return line
    if child.broken:
        raise ValueError(f"xprof {child.broken}")
    raise ValueError(f"xprof needed more than {time.monotonic() - begun_s:.1f} s")


def _answer(line: bytes, limits: TraceLimits) -> XprofPages:
    answer = _object(line)
    errors = answer.get("errors")
    reasons = [str(text) for text in errors.values()] if isinstance(errors, dict) else []
    if error := answer.get("error"):
        return _failed(_sentence(str(error), reasons, limits))
    pages = answer.get("pages")
    if not isinstance(pages, dict) or not pages:
        return _failed(f"xprof cannot read this trace{_because(reasons)}")
    failure = f"xprof lacks some figures{_because(reasons)}" if reasons else ""
    return XprofPages(pages, failure)


def _object(line: bytes) -> dict[str, Any]:
    try:
        answer = json_in(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ValueError("xprof gave an answer that is not JSON")
    return answer


def _sentence(error: str, reasons: Sequence[str], limits: TraceLimits) -> str:
    if error == "memory":
        return f"xprof needed more than {limits.memory_most / 2**30:.3g} GiB of memory"
    if error == "disk":
        return f"xprof wrote more than {DISK_MOST / 2**30:.3g} GiB of files"
    if error == "import":
        return f"xprof cannot be loaded{_because(reasons)}"
    sentences = {"absent": NOT_INSTALLED, "old": TOO_OLD}
    return sentences.get(error) or f"xprof {clean(error)[:REASON_MOST]}"


def _because(reasons: Sequence[str]) -> str:
    return f": {clean(reasons[0])[:REASON_MOST]}" if reasons else ""


def _failed(sentence: str) -> XprofPages:
    return XprofPages({}, sentence)
