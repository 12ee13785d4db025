"""Elements of HTML, with all text escaped, and the style that they share."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tpusmi.report import color_scale
from tpusmi.text import clean

BAR_SHARE, TRACK_SHARE = 0.28, 0.13
"""How much of a bar's color, and of gray where it is empty, is in the background of a number: so
little that the notebook's own text reads on it, dark or light. The line below a bar has all of it.
"""
OLD_SHARE = 0.8
"""How much of the text is left where a value is old."""
COLORS = {"": (66, 133, 244), "low": (52, 168, 83), "near": (249, 171, 0), "full": (234, 67, 53)}
GRAY = (136, 136, 136)
TAG, SIMULATED = "#5f6368", "#a142f4"
"""Backgrounds of white words."""


def _rgb(color: tuple[int, int, int]) -> str:
    return ",".join(map(str, color))


# The text keeps the notebook's own color, and backgrounds are mostly transparent: it reads in a
# light and a dark one. `--v` is how full a bar is, `--p` where its mark is. Notebooks stripe the
# rows of tables. All columns are as wide as they need, but for the commands: they get what is left.
STYLE = f"""
.tpusmi{{font:12px/1.6 ui-monospace,Menlo,Consolas,monospace;max-width:960px;overflow-x:auto;
--c:{_rgb(COLORS[""])}}}
.tpusmi table{{border-collapse:separate;border-spacing:2px;margin:4px 0;font:inherit}}
.tpusmi table tr{{background:none!important}}
.tpusmi table td,.tpusmi table th{{padding:0 6px;text-align:right;border:0;font-size:12px;
white-space:nowrap;vertical-align:top}}
.tpusmi table .l{{text-align:left;max-width:24ch;overflow:hidden;text-overflow:ellipsis}}
.tpusmi table .c{{width:100%;max-width:0}}
.tpusmi table [colspan]{{white-space:normal;overflow-wrap:anywhere;max-width:none}}
.tpusmi .n{{min-width:6ch}}
.tpusmi .m{{min-width:15ch}}
.tpusmi .old{{opacity:{OLD_SHARE}}}
.tpusmi .old .old{{opacity:1}}
.tpusmi .ended{{filter:grayscale(1)}}
.tpusmi .all{{font-weight:bold}}
.tpusmi .tag{{background:{TAG};color:#fff;padding:0 6px;border-radius:3px;font-weight:bold}}
.tpusmi .sim{{background:{SIMULATED}}}
.tpusmi .warn,.tpusmi .bad{{border-left:3px solid #f9ab00;padding-left:6px;overflow-wrap:anywhere}}
.tpusmi .bad{{border-color:#ea4335}}
.tpusmi .maps{{display:flex;flex-wrap:wrap;gap:4px 16px;margin:4px 0}}
.tpusmi .map{{display:grid;grid-template-columns:max-content repeat(16,1.9em);gap:2px;
text-align:center;line-height:1.4}}
.tpusmi .map i,.tpusmi .key i{{font-style:normal}}
.tpusmi .map .old{{background:rgba({_rgb(GRAY)},{TRACK_SHARE})}}
.tpusmi .key i{{padding:0 .3em}}
.tpusmi td[style]{{background:linear-gradient(90deg,#0000 calc(var(--p,-9px) - 1px),
currentcolor 0 calc(var(--p,-9px) + 1px),#0000 0),
linear-gradient(90deg,rgb(var(--c)) var(--v),#0000 0) bottom/100% 2px no-repeat,
linear-gradient(90deg,rgba(var(--c),{BAR_SHARE}) var(--v),rgba({_rgb(GRAY)},{TRACK_SHARE}) 0)}}
.tpusmi .low{{--c:{_rgb(COLORS["low"])}}}
.tpusmi .near{{--c:{_rgb(COLORS["near"])}}}
.tpusmi .full{{--c:{_rgb(COLORS["full"])}}}
"""
MAP_COLUMNS = 16
OLD, ENDED = "old", "ended"


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
    mark = "" if peak is None else f";--p:{100 * color_scale.within(peak):.0f}%"
    return f"--v:{100 * color_scale.within(share):.0f}%{mark}"


def heat(share: float) -> str:
    """The style of a cell of a heat map, in the same colors in every notebook."""
    color = color_scale.rgb(share)
    text = "#000" if color_scale.text_on(color) == color_scale.BLACK else "#fff"
    return f"background:{color_scale.hexadecimal(color)};color:{text}"


def _safe(text: str) -> str:
    if isinstance(text, Markup):
        return text
    return escape(text if text.isprintable() else clean(text))
