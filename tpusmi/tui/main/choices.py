"""What the user has chosen to see on the main page: panels and columns. Pure."""

from __future__ import annotations

from collections.abc import Collection

from tpusmi.report.column_choices import CHOICES
from tpusmi.tui.feed import PANELS, Options


class Choices:
    """The panels and columns that are hidden."""

    def __init__(self, options: Options) -> None:
        self.hidden = {*options.hidden}
        """Panels that are not shown."""
        self._columns = {
            table: {*titles} - {*options.columns.get(table, titles)}
            for table, titles in CHOICES.items()
        }

    def hidden_columns(self, table: str) -> Collection[str]:
        """Titles of the columns of a table that are not shown."""
        return self._columns[table]

    def is_shown(self, kind: str, name: str) -> bool:
        """True for a panel, or a column of the table `kind`, that is not hidden."""
        return name not in (self.hidden if kind == "panels" else self._columns[kind])

    def toggle(self, kind: str, name: str) -> None:
        """Hide or show a panel, or a column of the table `kind`."""
        hidden = self.hidden if kind == "panels" else self._columns[kind]
        hidden ^= {name}

    def panels(self) -> list[str]:
        """The hidden panels, top to bottom."""
        return [panel for panel in PANELS if panel in self.hidden]

    def columns(self, table: str) -> list[str]:
        """Titles of the columns of a table that are shown, left to right."""
        return [title for title in CHOICES[table] if title not in self._columns[table]]
