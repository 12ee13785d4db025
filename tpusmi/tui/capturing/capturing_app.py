"""The part of the dashboard's app that captures: the key, the question, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from tpusmi.model import Host, Process

if TYPE_CHECKING:
    from tpusmi.tui.capturing.capture_thread import Captured, Heard
    from tpusmi.tui.capturing.shown_captures import CaptureOrder, ShownCaptures
    from tpusmi.tui.page import Page
    from tpusmi.tui.scene import Scene

PAGE = "profile"
ENDS_WITHIN_S = 4.0
"""How long quitting waits for a capture to end and clean up: no longer than it takes to kill it."""


class CapturingApp(App[None]):
    """An app that captures one process at a time, each in a child of its own."""

    scene: Scene

    @property
    def page(self) -> Page:
        """The page on top, under the dialogs."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Show a message in the footer for a moment."""
        raise NotImplementedError

    def action_open(self, name: str) -> None:
        """Open the page of that name in place of the open one."""
        raise NotImplementedError

    @property
    def _captures(self) -> ShownCaptures:
        return self.scene.shown_captures()

    def action_profile(self) -> None:
        """Show the profile of the selected process; ask to capture if there is none, or it is open.

        While a capture runs, its page is opened in place of a second one.
        """
        from tpusmi.tui.capturing.refusals import why_not

        scene, captures = self.scene, self._captures
        targets = self.page.targets
        if captures.running is not None:
            self._show_running(captures)
        elif refusal := why_not(targets, scene.back_s, scene.options.host):
            self._refuse(captures, targets, refusal)
        elif self.page.NAME != PAGE and captures.newest(targets[0].key) is not None:
            self._open_page(captures, targets[0])
        else:
            self._ask_whether(targets[0])

    def _show_running(self, captures: ShownCaptures) -> None:
        assert captures.running is not None
        captures.shown = captures.running.order.process
        self.action_open(PAGE)
        self.page.draw()
        self.say(f"One capture at a time: that of pid {captures.shown.pid} is running")

    def _refuse(self, captures: ShownCaptures, targets: tuple[Process, ...], refusal: str) -> None:
        """Show why it cannot be captured; a profile that there is remains to be seen."""
        if len(targets) == 1 and self.page.NAME != PAGE and captures.newest(targets[0].key):
            self._open_page(captures, targets[0])
        self.say(refusal)

    def _open_page(self, captures: ShownCaptures, process: Process) -> None:
        captures.shown = process.key
        self.scene.choose_process(process.key)
        self.action_open(PAGE)

    def _ask_whether(self, process: Process) -> None:
        from tpusmi.tui.capturing.capture_screen import CaptureScreen

        newest = self.scene.newest
        simulated = newest is not None and newest.simulated
        screen = CaptureScreen(self.scene.look, process, simulated=simulated)
        self.push_screen(screen, lambda duration_ms: self._confirmed(process, duration_ms))

    def _confirmed(self, process: Process, duration_ms: int | None) -> None:
        host, captures = self.scene.options.host, self._captures
        if duration_ms is None or host is None or captures.running is not None:
            return
        if refusal := self._refusal_now(process, host):
            self.say(refusal)
            return
        from tpusmi.tui.capturing.capture_thread import CaptureThread
        from tpusmi.tui.capturing.shown_captures import CaptureOrder, RunningCapture

        order = CaptureOrder(process=process.key, duration_ms=duration_ms)
        thread = CaptureThread(order, host, self.scene.options.capturer, self.post_message)
        captures.begin(RunningCapture(order, thread, captures.clock()))
        thread.begin()
        self._open_page(captures, process)

    def _refusal_now(self, process: Process, host: Host) -> str:
        """Why it can no longer be captured: it may have ended while the question was on the screen,
        and another process may have its pid.
        """
        from tpusmi.tui.capturing.refusals import has_ended, why_not

        newest = self.scene.newest
        same = [p for p in (newest.processes if newest else ()) if p.key == process.key]
        return why_not(same, 0.0, host) if same else has_ended(process)

    def on_capture_heard(self, message: Heard) -> None:
        if (running := self._captures.running) is not None:
            running.stage = message.text
            self._redraw()

    def on_capture_captured(self, message: Captured) -> None:
        captures, order, result = self._captures, message.order, message.result
        captures.finish(order, result)
        keep = self.scene.options.keep_profile
        if not isinstance(result, str) and keep is not None:
            keep(order.process, result.profile, result.at_s)
        if self.page.NAME != PAGE:
            self.say(_news(order, result if isinstance(result, str) else ""))
        self._redraw()

    def _redraw(self) -> None:
        """Draw what shows captures: their page, and the header of the others."""
        if self.page.NAME == PAGE:
            self.page.draw()
        else:
            self.page.draw_header()

    def on_unmount(self) -> None:
        """End the capture that runs: its child does not outlive the screen."""
        captures = self.scene.captures
        if captures is not None and captures.running is not None:
            thread = captures.running.thread
            thread.cancel()
            if thread.is_alive():
                thread.join(ENDS_WITHIN_S)


def _news(order: CaptureOrder, error: str) -> str:
    """What became of a capture, for a screen that shows another page."""
    pid = f"pid {order.process.pid}"
    return f"{pid}: {error}" if error else f"{pid} is captured: P shows its profile"
