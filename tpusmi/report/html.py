"""A Snapshot as a fragment of HTML for notebooks: no script, no link, nothing from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from tpusmi.model import DENIED, FAILED, STALE_HOLDER, SUSPECT_HOLDER, Process, Snapshot
from tpusmi.report import verdicts, words
from tpusmi.report.htmldevices import devices
from tpusmi.report.markup import OLD, STYLE, Markup, joined, old, tag
from tpusmi.report.select import recent, told
from tpusmi.text import counted

PROCESSES_MOST = 12
NOTICES_MOST = 6
COMMAND_MOST = 80

# Else notebooks take what stands between two dollars of a command line for a formula.
_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"


def fragment(snapshot: Snapshot, standing: str = "", ended: bool = False) -> str:
    """The panel. `standing` says whether it is live; one that has ended is grey as a whole."""
    s = recent(snapshot)
    body = (devices(s), _processes(s), *_notices(s, snapshot))
    return tag(
        "div",
        Markup(f"<style>{STYLE}</style>"),
        _headline(s, standing, ended),
        tag("div", *body, class_=OLD if ended else ""),
        class_=f"tpusmi {_NO_FORMULAS}",
    )


def _headline(s: Snapshot, standing: str, ended: bool) -> Markup:
    libtpu = f"libtpu {s.host.libtpu_version}" if s.host.libtpu_version else ""
    facts = [tag("b", s.host.name), _hardware(s), libtpu, f"as of {_local(s.host.time)}"]
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


def _local(rfc3339: str) -> str:
    """The date, too: a notebook is opened again later."""
    try:
        # Python 3.10 does not read the Z.
        moment = datetime.fromisoformat(rfc3339.replace("Z", "+00:00"))
    except ValueError:
        return rfc3339
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def _processes(s: Snapshot) -> Markup:
    """A table of them, the dead last; empty when there is none."""
    every = sorted(s.processes, key=lambda p: (not p.is_living, not p.is_verified, not p.stale))
    if not every:
        return Markup("")
    heads = [tag("th", "PID")]
    heads += [tag("th", title, class_="l") for title in ("USER", "DEVICES", "STATE")]
    heads += [tag("th", title) for title in ("STEPS/s", "STEP p95")]
    heads += [tag("th", "COMMAND", class_="l")]
    lines = [line for p in every[:PROCESSES_MOST] for line in _process(s, p)]
    hidden = len(every) - PROCESSES_MOST
    more = tag("div", f"and {hidden} more") if hidden > 0 else ""
    return joined((tag("table", tag("tr", *heads), *lines), more))


def _process(s: Snapshot, p: Process) -> Iterator[Markup]:
    numbers = [d.number for d in s.devices_of(p.key)]
    command = words.shortened(words.command(p.command), COMMAND_MOST)
    texts = (p.user or words.UNKNOWN, words.ranges(numbers), verdicts.doing(p) or words.UNKNOWN)
    yield tag(
        "tr",
        tag("td", str(p.pid)),
        *(tag("td", text, class_="l") for text in texts),
        tag("td", _number(s, p, "steps_per_s")),
        tag("td", _number(s, p, "step_time_s.p95")),
        tag("td", command or words.UNKNOWN, class_="l"),
        class_=OLD if verdicts.is_faint(p) else "",
    )
    if p.is_doubtful:
        style = "bad" if p.is_stale else "warn"
        reason = tag("div", verdicts.sentence(p), class_=style)
        yield tag("tr", tag("td", reason, class_="l", colspan="7"))


def _number(s: Snapshot, p: Process, name: str) -> str:
    read = words.rate if name == "steps_per_s" else words.duration
    value = s.values.get((p.key, name))
    text = read(None if value is None else value.value)
    return old(text, value.age_s) if value is not None and value.stale else text


def _notices(s: Snapshot, whole: Snapshot) -> Iterator[Markup]:
    """What a person can act on, sources that failed, and what to do where nothing is."""
    if not s.devices and not s.processes:
        yield tag("div", "No TPU job seen. In training code: import tpusmi; tpusmi.start()")
    said = _said(s, whole)
    for text in said[:NOTICES_MOST]:
        yield tag("div", f"! {text}", class_="warn")
    if len(said) > NOTICES_MOST:
        yield tag("div", f"and {len(said) - NOTICES_MOST} more: see tpusmi --once")


def _said(s: Snapshot, whole: Snapshot) -> list[str]:
    """Each thing once: that a holder is stale stands below its row."""
    shown = {p.pid for p in s.processes}
    said = [
        n.message if n.pid is None else f"pid {n.pid}: {n.message}"
        for n in s.warnings
        if n.code not in (STALE_HOLDER, SUSPECT_HOLDER) or n.pid not in shown
    ]
    heard = " ".join(said)
    for o in whole.sources:
        if o.status in (DENIED, FAILED) and not (o.message and o.message in heard):
            said.append(f"{o.source} {o.status}: {o.message}")
        said += [f"{o.source}: {note}" for note in told(whole, o)]
    return said
