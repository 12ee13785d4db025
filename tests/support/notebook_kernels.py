"""A real Jupyter kernel: runs cells, and hears every message that a notebook would."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from support.commands import environment

LIMIT_S = 60.0

Message = dict[str, Any]


class Kernel:
    """A running kernel. What it publishes is heard in the order in which it was said."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.heard: list[Message] = []

    def run(self, code: str) -> list[Message]:
        """Run a cell to its end: what was published meanwhile. Fails when it raises."""
        first = len(self.heard)
        request = self._client.execute(code, store_history=True)
        self.wait_for(lambda m: _is_end_of(m, request))
        reply = self._client.get_shell_msg(timeout=LIMIT_S)
        assert reply["content"]["status"] == "ok", reply["content"]
        return self.heard[first:]

    def wait_for(self, wanted: Callable[[Message], bool], limit_s: float = LIMIT_S) -> Message:
        """The next message that is wanted; fails when there is none within the limit."""
        until_s = time.monotonic() + limit_s
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                self.heard.append(self._client.get_iopub_msg(timeout=left_s))
            except queue.Empty:
                break
            if wanted(self.heard[-1]):
                return self.heard[-1]
        raise AssertionError(f"nothing of the kind within {limit_s:.0f} s")


@contextmanager
def kernel(directory: Path, **more: str | None) -> Iterator[Kernel]:
    """A kernel of this Python that keeps its files under that directory."""
    manager, client, running = manager_of(directory, **more)
    try:
        yield running
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


def manager_of(directory: Path, **more: str | None) -> tuple[KernelManager, Any, Kernel]:
    """The same, for who ends it otherwise: its manager, the manager's client, and the kernel."""
    manager = KernelManager(connection_file=str(directory / "kernel.json"))
    env = environment(directory, **more)
    env.update(IPYTHONDIR=str(directory), JUPYTER_CONFIG_DIR=str(directory), HOME=str(directory))
    with open(os.devnull, "w") as nowhere:
        manager.start_kernel(env=env, stderr=nowhere, cwd=str(directory))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=LIMIT_S)
    return manager, client, Kernel(client)


def _is_end_of(message: Message, request: str) -> bool:
    is_idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
    return is_idle and message["parent_header"].get("msg_id") == request
