"""What the user chooses to see on the main page: keys, the dialog, and saving it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from textual.message import Message

from tpusmi.report.column_choices import CHOICES
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS
from tpusmi.tui.feed import PANELS, ShownSettings
from tpusmi.tui.main.choices import Choices
from tpusmi.tui.page import ListPage
from tpusmi.tui.scene import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.tui.settings_screen import Choice

DEVICES, PROCESSES = "devices", "processes"
MEANINGS = {
    "header": "host, load, versions (the top line stays while it has a warning)",
    "devices": "the table of devices",
    "graphs": "graphs of all devices",
    "processes": "the table of processes, and details of the selected one",
}


class ChoosingPage(ListPage):
    """A page whose panels and columns the user chooses."""

    @dataclass
    class Saved(Message):
        """The settings were saved, or why not."""

        text: str

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.choices = Choices(scene.options)
        self.panel = DEVICES if PROCESSES in self.choices.hidden else PROCESSES
        """The table that has the cursor."""

    def settings(self) -> ShownSettings:
        """What is shown, as settings: by their keys in the file."""
        return {
            ("theme",): self.scene.theme,
            ("window",): (self.scene.span_s or 0) // 60,
            ("hidden",): self.choices.panels(),
            **{("columns", table): self.choices.columns(table) for table in CHOICES},
        }

    def action_panel(self) -> None:
        """Move the cursor to the other table, if it is shown."""
        hidden = self.choices.hidden
        has_devices = self.scene.device is not None and DEVICES not in hidden
        to_devices = has_devices and (self.panel == PROCESSES or PROCESSES in hidden)
        self.panel = DEVICES if to_devices else PROCESSES
        self.draw()

    def action_hide(self, panel: str) -> None:
        """Hide or show a part of the page."""
        self._toggle("panels", panel)
        is_shown = self.choices.is_shown("panels", panel)
        how = "shown" if is_shown else "hidden; the same key shows them again"
        self.app.say(f"{panel.capitalize()} {how}")  # type: ignore[attr-defined]

    def show_processes(self) -> None:
        """Show the processes, with the cursor."""
        self.choices.hidden.discard(PROCESSES)
        self.panel = PROCESSES

    def draw_header(self) -> None:
        is_hidden = "header" in self.choices.hidden and not self.scene.is_unusual
        if self.header.display is is_hidden:
            self.header.display = not is_hidden
            self.call_later(self.draw)
        super().draw_header()

    # -- the dialog

    def action_choose(self, section: str) -> None:
        """Open the dialog about panels and columns, at that section."""
        from tpusmi.tui.settings_screen import SettingsScreen

        choices = [*self._listed()]
        first = 0 if section == "panels" else len(PANELS)
        self.app.push_screen(SettingsScreen(self.look, choices, first, self.action_save))

    def _listed(self) -> Iterator[Choice]:
        from tpusmi.tui.settings_screen import Choice

        helps = {
            "panels": MEANINGS,
            "devices": {c.title: c.help for c in DEVICE_COLUMNS},
            "processes": {c.title: c.help for c in PROCESS_COLUMNS},
        }
        for kind, names in (("panels", PANELS), *CHOICES.items()):
            title = "Panels" if kind == "panels" else f"Columns of {kind}"
            for name in names:
                yield self._choice(title, kind, name, helps[kind][name])
        if self.look.has_colors:
            yield Choice(
                section="Theme",
                name="theme",
                text="Space: the next one",
                state=self._theme,
                change=self._next_theme,
            )

    def _choice(self, title: str, kind: str, name: str, text: str) -> Choice:
        from tpusmi.tui.settings_screen import Choice

        return Choice(
            section=title,
            name=name,
            text=text,
            state=lambda: self.choices.is_shown(kind, name),
            change=lambda: self._toggle(kind, name),
        )

    def _toggle(self, kind: str, name: str) -> None:
        self.choices.toggle(kind, name)
        if self.panel in self.choices.hidden:
            self.action_panel()
        self.draw()

    def _theme(self) -> str:
        return self.scene.theme

    def _next_theme(self) -> None:
        from tpusmi.tui.draw.themes import THEMES, shown_here

        names = [*THEMES]
        self.scene.theme = names[(names.index(self.scene.theme) + 1) % len(names)]
        self.look.take_theme(shown_here(self.scene.theme))
        self.app.color_browser()  # type: ignore[attr-defined]
        self.draw()

    # -- saving

    def action_save(self) -> None:
        """Write what is shown to the settings file, on a thread: a file system may hang."""
        save = self.scene.options.save
        if save is None or self.app.is_web:
            self.app.say("Settings cannot be saved from here")  # type: ignore[attr-defined]
            return
        values = self.settings()

        def work() -> None:
            self.post_message(self.Saved(save(values)))

        try:
            threading.Thread(target=work, name="tpusmi-save", daemon=True).start()
        except RuntimeError:
            self.app.say("Not saved: no thread can be started")  # type: ignore[attr-defined]

    def on_choosing_page_saved(self, message: Saved) -> None:
        self.app.say(message.text)  # type: ignore[attr-defined]
