"""A Snapshot as a fragment of HTML for notebooks: no script, no link, nothing from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tpusmi.model import STALE_HOLDER, SUSPECT_HOLDER, Snapshot
from tpusmi.report import words
from tpusmi.report.htmltables import devices, processes
from tpusmi.report.markup import OLD, STYLE, Markup, joined, tag
from tpusmi.report.select import recent, remarks
from tpusmi.text import counted

NOTICES_MOST = 6

# Else notebooks take what stands between two dollars of a command line for a formula.
_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"


def fragment(snapshot: Snapshot, standing: str = "", ended: bool = False) -> str:
    """The panel. `standing` says whether it is live; one that has ended is gray as a whole."""
    s = recent(snapshot)
    body = (devices(s), processes(s), *_notices(s))
    return tag(
        "div",
        Markup(f"<style>{STYLE}</style>"),
        _headline(s, standing, ended),
        tag("div", *body, class_=OLD if ended else ""),
        class_=f"tpusmi {_NO_FORMULAS}",
    )


def _headline(s: Snapshot, standing: str, ended: bool) -> Markup:
    # With the date: a notebook is opened again later.
    time = words.local_time(s.host.time, "%Y-%m-%d %H:%M:%S %Z")
    libtpu = f"libtpu {s.host.libtpu_version}" if s.host.libtpu_version else ""
    facts = [tag("b", s.host.name), _hardware(s), libtpu, f"as of {time}"]
    if s.simulated:
        facts.insert(0, tag("span", "SIMULATED", class_="tag sim"))
    if standing:
        facts.append(tag("span", standing, class_="tag" if ended else ""))
    return tag("div", joined(filter(None, facts), " · "))


def _hardware(s: Snapshot) -> str:
    """`8 × TPU v5e`, and how many devices those are when it is another number."""
    kinds = Counter(c.kind for c in s.chips) or Counter(d.kind or "device" for d in s.devices)
    text = ", ".join(f"{n} × {kind}" for kind, n in kinds.items()) or "no TPU"
    more = s.chips and len(s.devices) not in (0, len(s.chips))
    return f"{text} ({counted(len(s.devices), 'device')})" if more else text


def _notices(s: Snapshot) -> Iterator[Markup]:
    """What a person can act on, sources that failed, and what to do where nothing is."""
    if not s.devices and not s.processes:
        yield tag("div", "No TPU job seen. In training code: import tpusmi; tpusmi.start()")
    lines = _remarks(s)
    for text in lines[:NOTICES_MOST]:
        yield tag("div", f"! {text}", class_="warn")
    if len(lines) > NOTICES_MOST:
        yield tag("div", f"and {len(lines) - NOTICES_MOST} more: see tpusmi --once")


def _remarks(s: Snapshot) -> list[str]:
    """Each once. The verdict on a stale holder is already below its row."""
    listed = {p.pid for p in s.processes}
    verdict_codes = (STALE_HOLDER, SUSPECT_HOLDER)
    return [
        text
        for text, notice, _ in remarks(s)
        if notice is None or notice.code not in verdict_codes or notice.pid not in listed
    ]
