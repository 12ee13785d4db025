"""What the job says of itself: written into its segment, and again when it changes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tpusmi.wire.layout import FACTS_JSON
from tpusmi.wire.writer import SegmentWriter

LEAST_S = 5.0
"""Between two rewritings because of a change."""
RECOMPILED_MOST = 3


class Facts:
    """The facts of one job, and when they were last written."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self._at_s = 0.0

    def warn(self, code: str, message: str) -> None:
        """Add a warning, to be published with the next write."""
        self.said.setdefault("warnings", []).append({"code": code, "message": message})

    def write(self, writer: SegmentWriter | None) -> None:
        """Publish the facts. Raises OSError."""
        self._at_s = time.monotonic()
        if writer is not None:
            bare = {**self.said, "argv": [], "errors": []}
            for facts in (self.said, bare):  # whatever they say, the devices are known
                text = json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace")
                if writer.facts.write(FACTS_JSON, text, self._at_s):
                    break

    def note_changes(
        self,
        writer: SegmentWriter | None,
        errors: list[str | None],
        compiled: Iterable[str],
        notes: Mapping[str, str],
    ) -> None:
        """Rewrite the facts when a device began to fail, a function is compiled repeatedly or
        there is a new warning among the notes, one for each code.
        """
        if time.monotonic() - self._at_s < LEAST_S:
            return
        # All of them and then the first: most_common(n) imports a module, which is not there any
        # more once the job has changed its root.
        most = Counter(compiled).most_common()[:RECOMPILED_MOST]
        recompiled = [name for name, count in most if count > 1]
        known = {warning["code"] for warning in self.said.get("warnings", ())}
        new = [code for code in tuple(notes) if code not in known]
        for code in new:
            self.warn(code, notes[code])
        now = {"errors": errors, "recompiled": recompiled}
        if new or any(self.said.get(name) != value for name, value in now.items()):
            self.said.update(now)
            self.write(writer)
