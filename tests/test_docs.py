"""The documentation: its links lead somewhere, and it says what the program says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tpusmi.agent import _mode
from tpusmi.cli.exits import Exit
from tpusmi.merge.causes import CASES, cure_in_general
from tpusmi.model import LOST_AFTER_S, History
from tpusmi.model.process import IDLE_S
from tpusmi.sources.libtpu.ports import USUAL
from tpusmi.tui import Options
from tpusmi.tui.draw.look import Look
from tpusmi.tui.draw.themes import THEMES
from tpusmi.tui.main.device_panel import DeviceTable
from tpusmi.tui.main.process_table import ProcessTable
from tpusmi.tui.memory.memory_tree import MemoryTable
from tpusmi.tui.scene import Scene

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "assets" / "make_docs.py"
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
PATH = re.compile(r".*/|.*\.(?:py|md|json|svg|toml|txt|ya?ml)|\.ci/run")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _links(page: Path) -> list[str]:
    """All targets on the page that are not on the web. Code has none."""
    # A link around a picture would hide in the picture's text, so there is none.
    found = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in found if "://" not in target]


def _anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of the page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    titles = re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_picture_is_there(page: Path) -> None:
    for target in _links(page):
        path, _, anchor = target.partition("#")
        found = page if not path else page.parent / path
        assert found.is_file(), target
        if anchor:
            assert anchor in _anchors(found), target


def test_every_page_and_every_picture_is_linked_from_somewhere() -> None:
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in _links(page)
    }
    wanted = {*(ROOT / "docs").glob("*.md"), *(ROOT / "assets").glob("*.svg")}
    assert wanted - linked == set()


def test_the_tables_in_docs_are_those_of_the_program() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_of_settings_names_every_theme() -> None:
    lines = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("theme ="))
    assert [name for name in THEMES if name not in line] == []


def test_the_page_of_commands_explains_every_exit_code() -> None:
    codes = {name for name in _first_cells("commands.md") if name.isdigit()}
    assert codes == {str(code.value) for code in Exit}


@pytest.mark.parametrize("name", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_a_guide_to_the_code_names_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|<!-- files .*<!-- /files ", "", text, flags=re.DOTALL | re.M)
    paths = [word for word in re.findall(r"`([\w./-]+)`", text) if PATH.fullmatch(word)]
    assert len(paths) > 30
    absent = [p for p in paths if not (ROOT / p).exists() and not (ROOT / "tpusmi" / p).exists()]
    assert absent == []


def test_every_package_and_module_is_on_the_map_of_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    map_ = page.partition("## The map")[2].partition("\n## ")[0]
    package = ROOT / "tpusmi"
    folders = {f"{p.parent.relative_to(package)}/" for p in package.glob("*/**/__init__.py")}
    modules = {p.name for p in package.glob("*.py") if p.name != "__init__.py"}
    assert {name for name in folders | modules if f"`{name}`" not in map_} == set()


def test_the_glossary_has_at_most_twenty_words() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    glossary = page.partition("## Glossary")[2].partition("\n## ")[0]
    assert 10 < glossary.count("\n| ") - 1 <= 20


def _first_cells(page: str) -> set[str]:
    """What stands in the first column of its tables, one by one."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("|")]
    return {name.strip() for cell in cells for name in cell.split(",")}


def test_every_column_of_the_tables_is_explained() -> None:
    look = Look(ascii=False, color=False)
    device = DeviceTable(Scene(look, Options(), History()))
    columns = (*device.columns(), *ProcessTable(look).columns())
    main = {c.title if c.heading is None else c.heading() for c in columns}
    assert main - _first_cells("main.md") == set()
    assert {c.title for c in MemoryTable(look).columns()} - _first_cells("memory.md") == set()


def test_what_helps_a_slow_job_is_said_in_the_words_of_the_job_page() -> None:
    text = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8").replace("`", "")
    cures = [cure_in_general(case).replace("`", "") for case in CASES]
    assert [cure for cure in cures if f"| {cure}" not in text] == []


def test_every_limit_of_the_security_page_is_made_from_the_programs_constants() -> None:
    """In a sentence there is no number but these; the tables are made."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- (limits|shares) .*?<!-- /\1 ", "", text, flags=re.DOTALL)
    found = set(re.findall(r"[0-9][0-9.,]*[0-9]|[0-9]", CODE.sub("", prose)))
    assert found == {f"{LOST_AFTER_S / 60:.0f}", f"{IDLE_S / 60:.0f}", f"{USUAL[0]}"}


def test_the_security_page_says_who_can_read_a_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPUSMI_SEGMENT_MODE", raising=False)
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert f"segments, mode `{_mode():04o}`" in text
