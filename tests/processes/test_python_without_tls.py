"""A Python that was built without the module ssl: what needs no TLS works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.commands import environment
from support.exporter_servers import answer, exposition, listening, says

WITHOUT = "import sys; sys.modules['ssl'] = sys.modules['_ssl'] = None\n"
LIMIT_S = 30


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, in a Python without ssl."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    path = os.pathsep.join([str(tmp_path), *filter(None, map(os.path.abspath, sys.path))])
    return subprocess.run(
        [sys.executable, "-m", "tpusmi", *words],
        env={**environment(tmp_path), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def test_exporters_are_asked_over_http(tmp_path: Path) -> None:
    with listening(says(lambda: answer(exposition("w-7")))) as good:
        done = run(tmp_path, "fleet", "--hosts", f"{good},https://{good}", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"w-7"' in done.stdout
    assert "this Python was built without TLS" in done.stdout


def test_a_server_that_needs_the_module_says_so(tmp_path: Path) -> None:
    """prometheus_client cannot be loaded without it."""
    done = run(tmp_path, "serve", "--port", "0")
    expected = "prometheus_client needs the module ssl, and this Python was built without it"
    assert (done.returncode, done.stderr) == (1, f"tpusmi: {expected}\n")
