"""`tpusmi.show()`: a live panel below a cell of a notebook, one plain table anywhere else."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import uuid
from contextlib import ExitStack
from typing import Any

from tpusmi.collect import Collector, open_collector, this_host
from tpusmi.model import Host, Snapshot
from tpusmi.report.table import table

INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.2, 3600.0
SHOWN_MOST_S = 8 * 3600.0
"""A forgotten notebook does not look at the host for ever."""
FIRST_LOOK_S = 2.0
"""The cell waits no longer than this for its first panel."""
FAILURES_MOST = 5
"""A panel that could not be drawn so many times in a row gives up."""
JOIN_S = 5.0

_live: Panel | None = None
"""The one panel of this process that is updated."""
_replacing = threading.Lock()


def show(
    interval_s: float = 1.0, duration_s: float | None = None, simulate: str | None = None
) -> Panel:
    """Show this host below the cell, updated in place until `.stop()` of what is returned.

    The panel also ends after `duration_s` seconds (8 hours by default and at most), when another
    takes its place, and with the kernel. Outside of a notebook one table is printed. `simulate`
    shows a simulated host: a type (`v5e-8`), or the directory that `tpusmi simulate` printed.
    Raises TypeError for times that are not numbers, and nothing else: what goes wrong is said in a
    line on stderr.
    """
    global _live
    panel = Panel(interval_s, duration_s)
    with _replacing:
        if _live is not None:
            _live.stop("another panel took its place")
        _live = None
        try:
            panel._open(simulate)
            if _in_notebook():
                panel._start()
                _live = panel
            else:
                panel._print()
        except KeyboardInterrupt:
            panel.stop("interrupted")
            raise
        except Exception as error:  # noqa: BLE001  # a view must not end the cell that asks for it
            panel.stop(f"failed: {error}")
            _say(f"tpusmi.show: {error}")
        return panel


class Panel:
    """What `show()` returns: stops the updates, and tells in its repr whether there are any."""

    def __init__(self, interval_s: float, duration_s: float | None) -> None:
        self._interval_s = min(INTERVAL_MOST_S, max(INTERVAL_LEAST_S, interval_s))
        lasts_s = SHOWN_MOST_S if duration_s is None else min(SHOWN_MOST_S, duration_s)
        self._until_s = time.monotonic() + lasts_s
        self._display_id = f"tpusmi-{uuid.uuid4().hex}"
        self._pid = os.getpid()
        self._end = threading.Event()
        self._why = ""
        self._stopped_at = ""
        self._held = ExitStack()
        self._collector: Collector | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<tpusmi panel: {self._standing()}>"

    def stop(self, why: str = "") -> None:
        """End the updates; the panel then says when that was. Does nothing the second time."""
        if os.getpid() != self._pid:
            return  # a forked child has the panel's thread no more than its kernel
        atexit.unregister(self.stop)
        self._why = self._why or why
        self._end.set()
        if self._thread is None:
            self._let_go()
        elif self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _open(self, simulate: str | None) -> None:
        """Start to look at the host. Raises ValueError when there is none of that name."""
        host = this_host() if simulate is None else self._simulated(simulate)
        self._collector = open_collector(host, period_s=self._interval_s)
        self._collector.start()
        until_s = time.monotonic() + FIRST_LOOK_S
        while not self._collector.have_all_answered() and time.monotonic() < until_s:
            time.sleep(0.02)

    def _print(self) -> None:
        """Print the host once, as a table."""
        stream = sys.stdout
        if stream is not None and self._collector is not None:
            ascii_only = not (getattr(stream, "encoding", None) or "").lower().startswith("utf")
            stream.write(table(self._collector.snapshot(), False, ascii_only, _columns()))
        self.stop("printed once: this is not a notebook")

    def _start(self) -> None:
        """Show the panel below the cell that runs, and update it from a thread."""
        self._draw(is_new=True)
        self._thread = threading.Thread(target=self._run, name="tpusmi-show", daemon=True)
        self._thread.start()
        atexit.register(self.stop, "the kernel ended")

    def _simulated(self, name: str) -> Host:
        if os.sep in name or os.path.isdir(name):
            from tpusmi.simulate.directory import attach

            return attach(name)
        from tpusmi.simulate.host import Plan, start

        return self._held.enter_context(start(Plan(name)))

    def _run(self) -> None:
        self._update()
        try:
            self._let_go()
        except Exception as error:  # noqa: BLE001  # of a thread that nobody watches
            self._why = self._why or f"failed: {error}"

    def _update(self) -> None:
        """Draw again and again, until there is a reason not to."""
        failures = 0
        while not self._end.wait(self._interval_s):
            if time.monotonic() >= self._until_s:
                self._why = "its time is over"
                return
            try:
                self._draw()
                failures = 0
            except Exception as error:  # noqa: BLE001  # the next one may succeed
                failures += 1
                if failures == FAILURES_MOST:
                    self._why = f"could not be shown: {error}"
                    return

    def _let_go(self) -> None:
        """Stop looking, say in the panel when that was, and end a host of our own."""
        if self._stopped_at:
            return
        self._stopped_at = time.strftime("%H:%M:%S")
        try:
            if self._collector is not None:
                self._collector.stop()
            if self._thread is not None:
                self._draw()
        finally:
            self._held.close()

    def _standing(self) -> str:
        if not self._stopped_at:
            return f"live, every {self._interval_s:g} s"
        return f"stopped at {self._stopped_at}" + (f" ({self._why})" if self._why else "")

    def _draw(self, is_new: bool = False) -> None:
        from IPython.display import display

        assert self._collector is not None
        if not is_new and _is_captured():
            return
        bundle = self._bundle(self._collector.snapshot())
        display(bundle, raw=True, display_id=self._display_id, update=not is_new)

    def _bundle(self, snapshot: Snapshot) -> dict[str, str]:
        """The panel for every kind of viewer."""
        from tpusmi.report.html import fragment

        standing = self._standing()
        return {
            "text/html": str(fragment(snapshot, standing, ended=bool(self._stopped_at))),
            "text/plain": f"{table(snapshot)}\n[{standing}]",
        }


def _shell() -> Any | None:
    """IPython's shell, without loading IPython; None where there is none."""
    ipython = sys.modules.get("IPython")
    found = getattr(ipython, "get_ipython", None)
    return None if found is None else found()


def _in_notebook() -> bool:
    """True in a kernel, whose outputs can be HTML; False in IPython on a terminal too."""
    return getattr(_shell(), "kernel", None) is not None


def _is_captured() -> bool:
    """True while a cell under %%capture runs, which would keep every update."""
    from IPython.core.displaypub import CapturingDisplayPublisher

    return isinstance(getattr(_shell(), "display_pub", None), CapturingDisplayPublisher)


def _columns() -> int | None:
    """Of the terminal on stdout; None where there is none."""
    try:
        return os.get_terminal_size().columns or None
    except OSError:
        return None


def _say(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{line}\n")
