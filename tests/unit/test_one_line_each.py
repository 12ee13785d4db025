"""A metric is one line, and a column is one line: every view and document has it by that alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
METRIC = '    Metric("fan_rpm", DEVICE, "count", "FAN", "Speed of the fan.", (AGENT,)),\n'
DEVICE_COLUMN = '    of_device("fan_rpm", width=5, rank=1, optional=True),\n'
PROCESS_COLUMN = (
    '    ColumnSpec("NICE", "How nice.", lambda at, p: Cell("19", 19), width=4, letter="z"),\n'
)
SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:]
import make_docs
from support import snapshots
from tpusmi.model import History
from tpusmi.report import html, query, plain_table
from tpusmi.report.schema import json_schema
from tpusmi.tui import Options
from tpusmi.tui.draw.look import Look
from tpusmi.tui.help import help_lines
from tpusmi.tui.keys import EVERYWHERE
from tpusmi.tui.main.device_panel import DeviceTable
from tpusmi.tui.main.process_table import ProcessTable
from tpusmi.tui.scene import Scene

def drawn(table, items):
    table.take(s)
    return [[c.title, "".join(x.text for x in c.draw(item, c.width)).strip()]
            for c in table.columns() for item in items]

s, look = snapshots.many(1, fan_rpm=1234), Look()
known, processes = query.device_fields(), ProcessTable(look)
print(json.dumps({
    "json": s.to_dict()["devices"][0],
    "schema": json_schema()["properties"]["devices"]["items"]["properties"],
    "csv": query.csv_rows(s, s.devices, query.parse_query("fan_rpm", known), query.Layout())
           if "fan_rpm" in known else "",
    "fields": query.help_text(known),
    "table": plain_table.table(s),
    "html": html.fragment(s),
    "devices": drawn(DeviceTable(Scene(look, Options(), History())), s.devices),
    "processes": (processes.take(s), drawn(processes, processes.branches()))[1],
    "help": "\\n".join("".join(x.text for x in line)
                      for line in help_lines(look, EVERYWHERE, "", 70)),
    "docs": {name: {title: make() for title, make in tables.items()}
             for name, tables in make_docs.TABLES.items() if name != "architecture.md"},
}))
"""


def views(tmp_path: Path, **lines: str) -> dict[str, Any]:
    """Everything that a program prints in which these lines are added, each before a table."""
    shutil.copytree(ROOT / "tpusmi", tmp_path / "tpusmi", ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(ROOT / "assets", tmp_path / "assets", ignore=shutil.ignore_patterns("*.svg"))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")  # of the page in docs
    for table, line in lines.items():
        name = "model/metrics.py" if table == "METRICS" else "report/columns.py"
        path = tmp_path / "tpusmi" / name
        text = path.read_text(encoding="utf-8")
        start = "METRICS: tuple[Metric, ...] = (\n" if table == "METRICS" else f"{table} = (\n"
        assert text.count(start) == 1
        path.write_text(text.replace(start, start + line), encoding="utf-8")
    places = [str(tmp_path), str(tmp_path / "assets"), str(ROOT / "tests")]
    command = [sys.executable, "-c", SCRIPT, *places]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def with_metric(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return views(tmp_path_factory.mktemp("metric"), METRICS=METRIC)


@pytest.fixture(scope="module")
def with_columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    lines = {"DEVICE_COLUMNS": DEVICE_COLUMN, "PROCESS_COLUMNS": PROCESS_COLUMN}
    return views(tmp_path_factory.mktemp("columns"), METRICS=METRIC, **lines)


def test_a_metric_is_in_the_json_and_in_its_schema(with_metric: dict[str, Any]) -> None:
    assert with_metric["json"]["fan_rpm"] == 1234
    assert with_metric["json"]["provenance"]["fan_rpm"]["source"] == "agent"
    assert with_metric["schema"]["fan_rpm"] == {
        "type": ["integer", "null"],
        "description": "Speed of the fan. Unit: count.",
    }


def test_a_metric_can_be_queried_and_is_explained(with_metric: dict[str, Any]) -> None:
    assert with_metric["csv"] == "1234\n"
    assert '"fan_rpm"\nSpeed of the fan. Scope: device.' in with_metric["fields"]
    metrics = with_metric["docs"]["numbers.md"]["metrics"]
    assert "| `fan_rpm` | device | count | FAN | Speed of the fan. | agent |" in metrics


def test_a_metric_is_not_a_column_before_it_has_a_line_there(with_metric: dict[str, Any]) -> None:
    for view in ("table", "html", "help"):
        assert "FAN" not in with_metric[view]


def test_a_column_is_on_every_view(with_columns: dict[str, Any]) -> None:
    lines = with_columns["table"].splitlines()
    assert lines[2].split()[0] == "FAN"
    assert lines[3].split()[0] == "1234"
    assert any(line.split()[:1] == ["NICE"] for line in lines)
    for title, value in (("FAN", "1234"), ("NICE", "19")):
        assert f">{title}</th>" in with_columns["html"]
        assert f">{value}</td>" in with_columns["html"]
    assert with_columns["devices"][0] == ["FAN", "1234"]
    assert with_columns["processes"][0] == ["NICE", "19"]


def test_a_column_is_explained_in_the_help_and_in_the_docs(with_columns: dict[str, Any]) -> None:
    lines = [" ".join(line.split()) for line in with_columns["help"].splitlines()]
    assert "FAN Speed of the fan." in lines
    assert "NICE How nice." in lines
    docs = with_columns["docs"]
    assert "| FAN | Speed of the fan. |" in docs["main.md"]["columns of devices"]
    assert "| NICE | How nice. |" in docs["main.md"]["columns of processes"]
    assert "| `z` | NICE |" in docs["keys.md"]["sort letters"]
