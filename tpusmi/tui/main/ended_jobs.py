"""Keys of the main page for the selected process and for ended jobs."""

from __future__ import annotations

from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.ending.forgetting import Done
from tpusmi.tui.keys import shown_key
from tpusmi.tui.main.choosing import DEVICES, ChoosingPage
from tpusmi.tui.main.process_panel import ProcessList
from tpusmi.tui.main.process_table import ProcessTable, forget_line


class EndedJobsPage(ChoosingPage):
    """A page with a table of processes. It folds ended jobs, and forgets them."""

    prompt: Prompt
    process_list: ProcessList
    table: ProcessTable
    asks_to_forget = False
    """The open question is whether to forget ended jobs."""

    def action_environment(self) -> None:
        """Show the variables of the selected process."""
        process = (
            next(iter(self.scene.owners), None)
            if self.panel == DEVICES
            else self.process_list.selected
        )
        if process is not None:
            from tpusmi.tui.main.environment_screen import EnvironmentScreen

            self.app.push_screen(EnvironmentScreen(self.look, process))

    def action_ended(self) -> None:
        """Show each ended job, or fold them into one line."""
        self.table.unfolded = not self.table.unfolded
        self.draw()

    def action_forget(self) -> None:
        """Ask whether to forget ended jobs."""
        s = self.scene.newest
        if self.scene.options.host is None or s is None:
            return
        if not any(p.is_dead for p in s.processes):
            self.app.say("No job here has ended")  # type: ignore[attr-defined]
            return
        self.show_processes()
        self.typing = self.asks_to_forget = True
        self.draw()
        self.prompt.ask(forget_line(self.look, self.size.width))

    def forget(self, is_sure: bool) -> None:
        """Forget ended jobs, if that was the answer."""
        self.asks_to_forget = False
        host = self.scene.options.host
        if is_sure and host is not None:
            from tpusmi.tui.ending.forgetting import ForgetThread

            ForgetThread(host, self.post_message).begin()

    def on_forget_done(self, message: Done) -> None:
        self.app.say(message.text)  # type: ignore[attr-defined]
        self.app.action_again()  # type: ignore[attr-defined]

    def fold_hint(self) -> str:
        """`X: show  C: clear`, with the user's own keys."""
        labels = {"ended": "show", "clear": "clear"}
        keys = [(shown_key(b), labels[b.id]) for b in self.bindings if b.id in labels]
        return "  ".join(f"{key}: {label}" for key, label in keys)
