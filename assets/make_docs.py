"""Writes the tables of the documentation that the program itself knows: keys, metrics, files; and
the manual page.

    python assets/make_docs.py [--check]

What stands in docs/ between `<!-- NAME -->` and `<!-- /NAME -->` is made here, the rest is written
by hand. With --check it writes nothing, and fails when a table is not the one that it would write.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from textual.binding import Binding

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import limits  # noqa: E402
import manual  # noqa: E402

from tpusmi.chips import GENERATIONS, GIB  # noqa: E402
from tpusmi.exporter.catalog import EVERYWHERE as ON_ALL_SERIES  # noqa: E402
from tpusmi.exporter.catalog import KINDS  # noqa: E402
from tpusmi.merge.advice import rows as advice_rows  # noqa: E402
from tpusmi.model import AGENT, LIBTPU, LIBTPU_SDK, METRICS, PROFILE  # noqa: E402
from tpusmi.report.columns import (  # noqa: E402
    DEVICE_COLUMNS,
    PROCESS_COLUMNS,
    SORT_LETTERS,
    ColumnSpec,
)
from tpusmi.report.profile import profile_text  # noqa: E402
from tpusmi.report.profile.findings import rows as profile_findings  # noqa: E402
from tpusmi.report.profile.styled import as_text  # noqa: E402
from tpusmi.trace.direct import read_trace  # noqa: E402
from tpusmi.trace.limits import TraceLimits  # noqa: E402
from tpusmi.tui.capturing.capture_screen import CaptureScreen  # noqa: E402
from tpusmi.tui.ending.kill_screen import KillScreen  # noqa: E402
from tpusmi.tui.help import HelpScreen  # noqa: E402
from tpusmi.tui.keys import EVERYWHERE, key_names  # noqa: E402
from tpusmi.tui.pages import keys_by_fleet_page, keys_by_page  # noqa: E402
from tpusmi.tui.palette import PaletteScreen  # noqa: E402
from tpusmi.tui.settings_screen import SettingsScreen  # noqa: E402

DOCS = ROOT / "docs"
PACKAGE = ROOT / "tpusmi"
SOURCES = {AGENT: "agent", LIBTPU: "metrics server", LIBTPU_SDK: "SDK", PROFILE: "profile"}
"""What the text calls them."""


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown. In a cell an upright stroke would begin the next one."""
    head = list(titles)
    lines = [head, ["---"] * len(head), *([c.replace("|", r"\|") for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return f"`{text}`"


def _of_page(bindings: Iterable[Binding]) -> str:
    """A line for each binding, with the name by which a person may give it other keys."""
    rows = ((_names(b), b.description, b.tooltip, _code(b.id or "")) for b in bindings)
    return table(("key", "name", "what it does", "in `[keys]`"), rows)


def _of_dialog(
    screen: type[CaptureScreen]
    | type[HelpScreen]
    | type[KillScreen]
    | type[PaletteScreen]
    | type[SettingsScreen],
) -> str:
    bindings = (b for b in screen.BINDINGS if isinstance(b, Binding))
    return table(
        ("key", "what it does"), ((_names(b), b.tooltip or b.description) for b in bindings)
    )


def _names(b: Binding) -> str:
    return " ".join(map(_code, key_names(b)))


def _order() -> str:
    return table(("key after `o`", "column"), ((_code(k), t) for k, t in SORT_LETTERS.items()))


def _columns(columns: Iterable[ColumnSpec]) -> str:
    return table(("column", "what it shows"), ((c.title, c.help) for c in columns))


def _metrics() -> str:
    rows = (
        (
            _code(m.name),
            m.scope,
            m.unit,
            m.title,
            m.help,
            ", ".join(SOURCES[source] for source in m.trust if source in SOURCES),
        )
        for m in METRICS
    )
    return table(("in JSON", "of a", "unit", "title", "what it is", "who measures it"), rows)


def _series() -> str:
    rows = (
        (_code(k.name), k.kind, ", ".join(map(_code, k.labels)) or "–", k.help)
        for k in KINDS.values()
    )
    return table(("series", "kind", "labels", "what it is"), rows)


def _labels_of_all() -> str:
    rows = ((_code(name), text) for name, text in ON_ALL_SERIES.items())
    return table(("label of all series", "its value"), rows)


def _notices() -> str:
    rows = ((_code(code), meaning, advice) for code, meaning, advice in advice_rows())
    return table(("code", "what it means", "what to do"), rows)


def _chips() -> str:
    rows = (
        (
            g.kind,
            str(g.devices_per_chip),
            str(g.cores_per_chip),
            f"{g.cores_per_chip * g.mxus_per_core} of {g.mxu_size}×{g.mxu_size}",
            f"{g.hbm_bytes / GIB:.0f} GiB",
            f"{g.hbm_bytes_per_s / 1e9:.0f} GB/s",
            *(
                "–" if rate is None else f"{rate / 1e12:.0f}"
                for rate in (g.bf16_flops_per_s, g.int8_flops_per_s, g.fp8_flops_per_s)
            ),
            f"{g.bf16_flops_per_s / g.hbm_bytes_per_s:.0f}",
        )
        for g in GENERATIONS
    )
    of_a_chip = ("devices", "TensorCores", "MXUs", "HBM", "HBM bandwidth")
    rates = ("bf16 TFLOP/s", "int8 TOP/s", "fp8 TFLOP/s", "ridge, FLOP/byte")
    return table(("chip", *of_a_chip, *rates), rows)


def _summary(path: Path) -> str:
    """What the module's docstring says first."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def _files() -> str:
    """A table for each folder of the package, with its modules."""
    folders = sorted({path.parent for path in PACKAGE.rglob("*.py")})
    return "\n\n".join(map(_folder, folders))


def _folder(folder: Path) -> str:
    name = folder.relative_to(PACKAGE.parent)
    modules = [p for p in sorted(folder.glob("*.py")) if p.name != "__init__.py"]
    head = f"**`{name}/`**: {_summary(folder / '__init__.py')}"
    if not modules:
        return head
    return (
        f"{head}\n\n{table(('file', 'its job'), ((_code(p.name), _summary(p)) for p in modules))}"
    )


def _findings() -> str:
    return table(("finding", "from", "what to do"), profile_findings())


PAGE_COLUMNS = 100


def _profile_page() -> str:
    """The page of a real trace, with tpusmi's own reading of it, in UTC."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    path = ROOT / "tests" / "data" / "xplane" / "v6e-4_inference" / "tpu_inference.xplane.pb"
    profile = read_trace(str(path), TraceLimits(until_s=time.monotonic() + 60))
    capture = profile.capture._replace(analyzed_s=None)
    lines = profile_text.lines((profile._replace(capture=capture),), PAGE_COLUMNS)
    return f"```text\n{as_text(lines, color=False, ascii_only=False)}```"


def _of_fleet() -> dict[str, list[Binding]]:
    """The keys of the pages of a fleet besides those of every page of a host, each once."""
    seen = {b.id for b in EVERYWHERE} - {"copy", "back"}
    pages = {}
    for name, keys in keys_by_fleet_page().items():
        pages[name] = [b for b in keys if b.id not in seen]
        seen |= {b.id for b in keys}
    return {name: keys for name, keys in pages.items() if keys}


TABLES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "keys.md": {
        "keys of every page": lambda: _of_page(EVERYWHERE),
        **{
            f"keys of {name}": partial(_of_page, [b for b in keys if b not in EVERYWHERE])
            for name, keys in keys_by_page().items()
        },
        **{
            f"keys of the {name} page": partial(_of_page, keys)
            for name, keys in _of_fleet().items()
        },
        "sort letters": _order,
        "keys of the kill dialog": partial(_of_dialog, KillScreen),
        "keys of the capture dialog": partial(_of_dialog, CaptureScreen),
        "keys of the help": partial(_of_dialog, HelpScreen),
        "keys of the palette": partial(_of_dialog, PaletteScreen),
        "keys of the settings dialog": partial(_of_dialog, SettingsScreen),
    },
    "main.md": {
        "columns of devices": partial(_columns, DEVICE_COLUMNS),
        "columns of processes": partial(_columns, PROCESS_COLUMNS),
    },
    "notices.md": {"notices": _notices},
    "architecture.md": {"files": _files},
    "profile.md": {"page of a real trace": _profile_page, "findings": _findings},
    "numbers.md": {"metrics": _metrics, "chips": _chips},
    "serve.md": {"labels of all series": _labels_of_all, "series": _series},
    "security.md": {name: partial(table, *told) for name, told in limits.TABLES.items()},
}
"""By file, and by the name between the marks."""


MANUAL = ROOT / "assets" / "tpusmi.1"


def written(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The text with its tables. Raises ValueError when one of them has no place in it."""
    for name, make in tables.items():
        first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
        if text.count(first) != 1 or text.count(last) != 1:
            raise ValueError(f"{first} and {last} are not there once each")
        before, _, rest = text.partition(first)
        text = f"{before}{first}\n{make()}\n{last}{rest.partition(last)[2]}"
    return text


def main() -> None:
    """Write the tables, or compare them."""
    check, other = "--check" in sys.argv, []
    texts = {DOCS / name: partial(written, tables=tables) for name, tables in TABLES.items()}
    texts[MANUAL] = lambda _: manual.page()
    for path, make in texts.items():
        old = path.read_text(encoding="utf-8")
        new = make(old)
        if not check:
            path.write_text(new, encoding="utf-8")
        elif old != new:
            other.append(path.name)
    if other:
        raise SystemExit(f"not what the program says: {', '.join(other)}; run this without --check")


if __name__ == "__main__":
    main()
