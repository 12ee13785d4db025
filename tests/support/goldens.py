"""Files that hold what a view must show, and the one way to accept others."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

ACCEPT = "TPUSMI_ACCEPT=1 python -m pytest -m golden"
IS_ACCEPTING = bool(os.environ.get("TPUSMI_ACCEPT"))


def same_as_golden(text: str, path: Path) -> None:
    """Fails where the file holds another text. Accepting writes it instead."""
    if IS_ACCEPTING:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != golden:
        old, new = golden.splitlines(), text.splitlines()
        lines = difflib.unified_diff(old, new, "golden", "now", n=1, lineterm="")
        raise AssertionError("\n".join([f"{path} differs:", *lines, f"To accept all: {ACCEPT}"]))
