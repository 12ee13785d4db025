"""Writes `tpusmi/api/objects.pyi`, which tells editors and mypy the attributes of the Python API.

    python assets/make_stub.py

It is made from the table of JSON keys, as the classes themselves are.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tpusmi.api.item import Item  # noqa: E402
from tpusmi.api.kinds import Attribute, object_kinds  # noqa: E402
from tpusmi.api.objects import BASES  # noqa: E402

STUB = ROOT / "tpusmi" / "api" / "objects.pyi"
WIDTH = 100
HEAD = """# Made by `python assets/make_stub.py` from the table of JSON keys: do not edit.
from typing import Literal

from tpusmi.api.item import Item
from tpusmi.api.parts import DevicePart, NoticePart, ProcessPart, SitePart
from tpusmi.api.whole import Whole
"""


def stub() -> str:
    """The text of the file."""
    classes = (_class(name) for name in object_kinds())
    return "\n".join([HEAD, *classes])


def _class(name: str) -> str:
    kind = object_kinds()[name]
    first = kind.doc.partition("\n")[0]
    lines = [f"class {name}({BASES.get(name, Item).__name__}):", f'    """{first}"""', ""]
    for attribute, has in kind.attributes.items():
        lines += _attribute(attribute, has)
    return "\n".join([*lines, ""])


def _attribute(name: str, has: Attribute) -> list[str]:
    text = textwrap.wrap(has.help, WIDTH - 14)
    several = [f'"""{text[0]}', *text[1:], '"""'] if len(text) > 1 else [f'"""{has.help}"""']
    body = "\n        ".join(several)
    head = f"    def {name}(self) -> {has.annotation}:"
    if len(head) > WIDTH - 4:
        head = f"    def {name}(\n        self,\n    ) -> {has.annotation}:"
    return ["    @property", f"{head}\n        {body}" if has.help else f"{head} ..."]


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
