"""Captures over gRPC: the profiler services of running jobs record at the same moment, and each
sends its trace to a file of ours.

A thread for each address; a service that is slow or dead holds up none of the others for long.
Only sockets and files: no library that prints, forks or keeps a trace in memory.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Sequence

from tpusmi.profiler.remote_addresses import Address
from tpusmi.profiler.remote_round import LATE_S, Meeting, Round, Space
from tpusmi.profiler.remote_task import CONNECT_S, RemoteTask
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest, Progress
from tpusmi.text import counted
from tpusmi.trace.troubles import CaptureError, Trouble

ADDRESSES_MOST = 256
LOOK_S = 0.1
JOIN_S = 1.0
"""For all threads to remove what they have written, after an interrupt."""
SPARE_S = 1.0
"""For a thread to notice that its time is up."""


def capture(
    addresses: Sequence[Address],
    request: CaptureRequest,
    folder: str,
    progress: Progress,
    pid: int | None = None,
) -> list[CapturedTrace | CaptureError]:
    """A trace, or why there is none, for each address, in their order; all begin together.

    With a pid, nothing is captured unless the kernel shows that this process answers: several can
    share a port, and a port in another network namespace is that of another process.

    Raises CaptureError when there are too many addresses.
    """
    if len(addresses) > ADDRESSES_MOST:
        sentence = f"{len(addresses)} addresses are too many: {ADDRESSES_MOST} at most"
        raise CaptureError(Trouble.FAILED, sentence)
    folder = os.path.abspath(folder)
    tasks, refused = _tasks(addresses)
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    shared = Round(
        request=request,
        folder=folder,
        meeting=Meeting(len(tasks)),
        space=Space(folder),
        say=words.put,
        pid=pid,
    )
    if tasks:
        names = " ".join(str(address) for address in addresses[:3])
        more = counted(len(addresses), "profiler service") if len(addresses) > 3 else names
        progress(f"connecting to {more}")
    try:
        for task in tasks.values():
            task.start(shared)
        _wait(list(tasks.values()), shared, words, progress)
    finally:
        for task in tasks.values():
            task.stop()
        until_s = time.monotonic() + JOIN_S
        for task in tasks.values():
            task.join(until_s)
    return [
        refused[place] if place in refused else tasks[place].outcome()
        for place in range(len(addresses))
    ]


def _tasks(
    addresses: Sequence[Address],
) -> tuple[dict[int, RemoteTask], dict[int, CaptureError]]:
    """What is to be done, and what cannot be, by place in the list."""
    tasks: dict[int, RemoteTask] = {}
    refused: dict[int, CaptureError] = {}
    for place, address in enumerate(addresses):
        if address in addresses[:place]:
            refused[place] = CaptureError(Trouble.FAILED, f"{address} is in the list twice")
        else:
            tasks[place] = RemoteTask(place, address)
    return tasks, refused


def _wait(
    tasks: Sequence[RemoteTask],
    shared: Round,
    words: queue.SimpleQueue[str],
    progress: Progress,
) -> None:
    """Until each task has ended, or its time is up."""
    sentences: set[str] = set()
    began_s = time.monotonic()
    most_s = CONNECT_S + LATE_S + shared.limit_s + SPARE_S
    while any(task.is_running for task in tasks):
        waited_s = time.monotonic() - began_s
        if waited_s > most_s:
            return
        if waited_s > CONNECT_S + SPARE_S:
            for task in tasks:
                task.give_up_connecting()
        try:
            sentence = words.get(timeout=LOOK_S)
        except queue.Empty:
            continue
        if sentence and sentence not in sentences:
            sentences.add(sentence)
            progress(sentence)
