"""Forgets ended jobs from the screen, on a thread: a file system may take its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from tpusmi.model import Host


@dataclass
class Done(Message, namespace="forget"):
    """What became of the segments of ended jobs, in a sentence."""

    text: str


class ForgetThread(threading.Thread):
    """Removes the segments of ended jobs. A daemon: quitting does not wait for it."""

    def __init__(self, host: Host, post: Callable[[Message], object]) -> None:
        super().__init__(name="tpusmi-forget", daemon=True)
        self._host, self._post = host, post

    def begin(self) -> None:
        """Start; if no thread can be started, post that as the result."""
        try:
            self.start()
        except RuntimeError as error:
            self._post(Done(f"Cannot forget ended jobs: {error}"))

    def run(self) -> None:
        """Do the work, and post its result."""
        try:
            from tpusmi.actions.clearing import forget
            from tpusmi.report.clearing_text import summary

            text = summary(forget(self._host))
        except Exception as error:  # noqa: BLE001  # shown, in place of the result
            text = f"cannot forget ended jobs: {error!r}"
        self._post(Done(text[:1].upper() + text[1:]))
