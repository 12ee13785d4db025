"""Elements of HTML, with all text escaped, and the style that they share."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tpusmi.text import clean

# Colors are half transparent and text keeps the notebook's own: it reads in a light and a dark
# one. `--v` is how full a bar is, `--p` where its mark is. Notebooks stripe the rows of tables.
STYLE = """
.tpusmi{font:12px/1.6 ui-monospace,Menlo,Consolas,monospace;max-width:960px;overflow-x:auto;
--c:66,133,244}
.tpusmi table{border-collapse:separate;border-spacing:2px;margin:4px 0;font:inherit}
.tpusmi table tr{background:none!important}
.tpusmi table td,.tpusmi table th{padding:0 6px;text-align:right;border:0;font-size:12px;
white-space:nowrap}
.tpusmi table .l{text-align:left;white-space:normal;overflow-wrap:anywhere}
.tpusmi table .l:first-child:not([colspan]),.tpusmi table th.l{white-space:nowrap}
.tpusmi .n{min-width:5em}
.tpusmi .m{min-width:11em}
.tpusmi .old{opacity:.55}
.tpusmi .all{font-weight:bold}
.tpusmi .tag{background:#5f6368;color:#fff;padding:0 6px;border-radius:3px;font-weight:bold}
.tpusmi .sim{background:#a142f4}
.tpusmi .warn,.tpusmi .bad{border-left:3px solid #f9ab00;padding-left:6px;overflow-wrap:anywhere}
.tpusmi .bad{border-color:#ea4335}
.tpusmi .maps{display:flex;flex-wrap:wrap;gap:4px 16px;margin:4px 0}
.tpusmi .map{display:grid;grid-template-columns:max-content repeat(16,1.9em);gap:2px;
text-align:center;line-height:1.4}
.tpusmi .map i{font-style:normal;background:#8883}
.tpusmi [style]{background:linear-gradient(90deg,#0000 calc(var(--p,-9px) - 1px),
currentcolor 0 calc(var(--p,-9px) + 1px),#0000 0),
linear-gradient(90deg,rgba(var(--c),.5) var(--v),#8883 0)}
.tpusmi .map [style]{background:rgba(var(--c),var(--v))}
.tpusmi .low{--c:52,168,83}
.tpusmi .near{--c:249,171,0}
.tpusmi .full{--c:234,67,53}
"""
MAP_COLUMNS = 16
OLD = "old"


class Markup(str):
    """HTML. Any other text is escaped where it becomes part of one."""

    __slots__ = ()


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """The parts one after another."""
    return Markup(str(_safe(between)).join(map(_safe, parts)))


def tag(name: str, *content: str, **attributes: str) -> Markup:
    """An element with that content; empty attributes are left out, `class_` is `class`."""
    written = "".join(f' {k.rstrip("_")}="{_safe(v)}"' for k, v in attributes.items() if v)
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def bar(share: float, peak: float | None = None) -> str:
    """The style of a bar that is filled to `share`, with a mark at `peak`; both 0 to 1."""
    mark = "" if peak is None else f";--p:{100 * within(peak):.0f}%"
    return f"--v:{100 * within(share):.0f}%{mark}"


def within(share: float) -> float:
    """The share, not less than 0 nor more than 1."""
    return min(max(share, 0.0), 1.0)


def _safe(text: str) -> str:
    if isinstance(text, Markup):
        return text
    return escape(text if text.isprintable() else clean(text))
