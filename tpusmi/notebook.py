"""`tpusmi.show()`: a live panel below a notebook cell, or one plain table elsewhere."""

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
from tpusmi.report.plain_table import table

INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.2, 3600.0
SHOWN_MOST_S = 8 * 3600.0
"""The longest that a forgotten notebook keeps reading the host."""
FIRST_LOOK_S = 2.0
"""The longest that a cell waits for the values of its first panel."""
FAILURES_MOST = 5
"""A panel that fails to draw this many times in a row gives up."""
JOIN_S = 5.0

_live: Panel | None = None
"""The only live panel of this process."""
_replacing = threading.Lock()


def show(
    interval_s: float = 1.0,
    duration_s: float | None = None,
    simulate: str | os.PathLike[str] | None = None,
) -> Panel:
    """Show this host in a panel below the cell, updated in place until you call its `.stop()`.

    The panel also ends after `duration_s` seconds (8 hours by default and at most), when another
    panel replaces it, and with the kernel. Outside a notebook, this prints one table. `simulate`
    shows a simulated host: a type (`v5e-8`), or the directory that `tpusmi simulate` printed.
    Raises only TypeError, for arguments of a wrong type; other errors are a line on stderr.

    >>> panel = tpusmi.show(simulate="v5e-8")
    tpusmi ...
    >>> panel.stop()
    """
    global _live
    _check(interval_s, duration_s, simulate)
    panel = Panel(interval_s, duration_s)
    with _replacing:
        if _live is not None:
            _live.stop("another panel replaced it")
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
        except Exception as error:  # noqa: BLE001  # a view must not end the cell that opens it
            panel.stop(f"failed: {error}")
            if sys.stderr is not None:
                sys.stderr.write(f"tpusmi.show: {error}\n")
        return panel


def _check(interval_s: object, duration_s: object, simulate: object) -> None:
    """Raises TypeError with what was expected."""
    hint = f"; a simulated host is show(simulate={interval_s!r})"
    for name, seconds in (("interval_s", interval_s), ("duration_s", duration_s)):
        if name == "duration_s" and seconds is None:
            continue
        if isinstance(seconds, (bool, str, bytes)) or not hasattr(seconds, "__float__"):
            more = hint if name == "interval_s" and isinstance(seconds, str) else ""
            raise TypeError(f"{name} must be a number of seconds, not {seconds!r}{more}")
    if simulate is not None and not isinstance(simulate, (str, os.PathLike)):
        expected = 'simulate must be a type of machine, as in simulate="v5e-8", or a directory'
        raise TypeError(f"{expected}, not {simulate!r}")


class Panel:
    """The result of `show()`: stops the updates; its repr says whether they are live.

    >>> panel = tpusmi.show(simulate="v5e-8")
    tpusmi ...
    >>> panel
    <tpusmi panel: ...>
    """

    def __init__(self, interval_s: float, duration_s: float | None) -> None:
        self._interval_s = min(INTERVAL_MOST_S, max(INTERVAL_LEAST_S, interval_s))
        limit_s = SHOWN_MOST_S if duration_s is None else min(SHOWN_MOST_S, duration_s)
        self._until_s = time.monotonic() + limit_s
        self._display_id = f"tpusmi-{uuid.uuid4().hex}"
        self._pid = os.getpid()
        self._end = threading.Event()
        self._end_reason = ""
        self._stopped_at = ""
        self._simulated_host = ExitStack()
        self._collector: Collector | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<tpusmi panel: {self._status()}>"

    def stop(self, why: str = "") -> None:
        """End the updates; the panel then shows when they ended. Does nothing the second time."""
        if os.getpid() != self._pid:
            return  # a forked child has neither the panel's thread nor its kernel
        atexit.unregister(self.stop)
        self._end_reason = self._end_reason or why
        self._end.set()
        if self._thread is None:
            self._close()
        elif self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _open(self, simulate: str | os.PathLike[str] | None) -> None:
        """Start reading the host. Raises ValueError if no simulated host has that name."""
        host = this_host() if simulate is None else self._simulated(simulate)
        self._collector = open_collector(host, period_s=self._interval_s)
        self._collector.start()
        until_s = time.monotonic() + FIRST_LOOK_S
        while not self._collector.have_all_answered() and time.monotonic() < until_s:
            time.sleep(0.02)

    def _print(self) -> None:
        """Print one table of the host."""
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

    def _simulated(self, name: str | os.PathLike[str]) -> Host:
        """A host of that type, whose job has an agent as in `snapshot()`; or that directory."""
        from tpusmi.simulate.host import opened_host

        return self._simulated_host.enter_context(opened_host(os.fspath(name), agent=True))

    def _run(self) -> None:
        self._update()
        try:
            self._close()
        except Exception as error:  # noqa: BLE001  # the end of a thread
            self._end_reason = self._end_reason or f"failed: {error}"

    def _update(self) -> None:
        """Draw again and again, until there is a reason to stop."""
        failures = 0
        while not self._end.wait(self._interval_s):
            if time.monotonic() >= self._until_s:
                self._end_reason = "its time is over"
                return
            try:
                self._draw()
                failures = 0
            except Exception as error:  # noqa: BLE001  # the next drawing may succeed
                failures += 1
                if failures == FAILURES_MOST:
                    self._end_reason = f"could not be shown: {error}"
                    return

    def _close(self) -> None:
        """Stop reading, show that in the panel, and end the simulated host if there is one."""
        if self._stopped_at:
            return
        self._stopped_at = time.strftime("%H:%M:%S")
        try:
            if self._collector is not None:
                self._collector.stop()
            if self._thread is not None:
                self._draw()
        finally:
            self._simulated_host.close()

    def _status(self) -> str:
        if not self._stopped_at:
            return f"live, every {self._interval_s:g} s"
        reason = f" ({self._end_reason})" if self._end_reason else ""
        return f"stopped at {self._stopped_at}{reason}"

    def _draw(self, is_new: bool = False) -> None:
        from IPython.display import display

        assert self._collector is not None
        if not is_new and _is_captured():
            return
        bundle = self._bundle(self._collector.snapshot())
        display(bundle, raw=True, display_id=self._display_id, update=not is_new)

    def _bundle(self, snapshot: Snapshot) -> dict[str, str]:
        """The panel in every format that a viewer may want."""
        from tpusmi.report.html import fragment

        status = self._status()
        return {
            "text/html": str(fragment(snapshot, status, ended=bool(self._stopped_at))),
            "text/plain": f"{table(snapshot)}\n[{status}]",
        }


def _shell() -> Any | None:
    """IPython's shell, without loading IPython; None if there is none."""
    ipython = sys.modules.get("IPython")
    get_ipython = getattr(ipython, "get_ipython", None)
    return None if get_ipython is None else get_ipython()


def _in_notebook() -> bool:
    """True in a kernel, which can show HTML; False in IPython on a terminal."""
    return getattr(_shell(), "kernel", None) is not None


def _is_captured() -> bool:
    """True while a cell with %%capture runs, which would store every update."""
    from IPython.core.displaypub import CapturingDisplayPublisher

    return isinstance(getattr(_shell(), "display_pub", None), CapturingDisplayPublisher)


def _columns() -> int | None:
    """Columns of the terminal on stdout; None if there is none."""
    try:
        return os.get_terminal_size().columns or None
    except OSError:
        return None
