"""deploy/ and `--textfile` with the programs that read them in use: the schemas of Kubernetes, and
node_exporter.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from support.free_ports import free_port
from support.commands import TPUSMI, environment
from support.requirements import needs
from support.scrapers import LIMIT_S, get
from support.waits import until

ROOT = Path(__file__).resolve().parents[2]
NODE_EXPORTER = "prometheus-node-exporter"
"""The name that Debian gives it."""
LEAST = "1.30"
"""The version of Kubernetes that the pods need."""


def of_kubernetes() -> list[dict[str, object]]:
    """What the manifests and the guides give to `kubectl apply`, without custom resources."""
    texts = [(ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8")]
    for page in ("serve.md", "fleet.md", "where.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        texts += re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    whole = [one for text in texts for one in yaml.safe_load_all(text)]
    builtin = re.compile(r"(v1|apps/v1|networking\.k8s\.io/v1)")
    return [one for one in whole if builtin.fullmatch(str(one.get("apiVersion", "")))]


def test_kubernetes_accepts_the_manifests_and_knows_all_their_keys() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    kinds = set()
    for one in of_kubernetes():
        for version in (LEAST, validate.latest_version()):
            validate.validate(one, version, strict=True)
        kinds.add(one["kind"])
    assert {"Namespace", "ServiceAccount", "DaemonSet", "NetworkPolicy", "Service"} <= kinds


@contextmanager
def running(directory: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command, killed at the end."""
    process = subprocess.Popen(
        command,
        env=environment(directory),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_S)


def series(text: str) -> set[str]:
    """The names and labels of all our series in a text of Prometheus."""
    return {*re.findall(r"^(tpusmi_\w+(?:\{.*\})?) \S+$", text, re.MULTILINE)}


@needs(NODE_EXPORTER)
def test_node_exporter_serves_the_file_as_it_is_and_nothing_after_the_end(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    port = free_port()
    reader = (
        *(NODE_EXPORTER, "--collector.disable-defaults", "--collector.textfile"),
        *(f"--collector.textfile.directory={files}", f"--web.listen-address=127.0.0.1:{port}"),
    )
    writer = (*TPUSMI, "serve", "--simulate", "v5e-1", "--textfile", str(files), "--interval", "1")

    def served() -> str:
        try:
            return get(f"http://127.0.0.1:{port}/metrics").text
        except OSError:  # it does not listen yet
            return ""

    with running(tmp_path, *reader):
        with running(tmp_path, *writer) as process:
            until(lambda: "tpusmi_chip_info{" in served(), LIMIT_S, "the series of the file")
            until(
                lambda: series((files / "tpusmi.prom").read_text("utf-8")) == series(served()),
                LIMIT_S,
                "the same series",
            )
            assert "node_textfile_scrape_error 0" in served()
            process.terminate()
            assert process.wait(LIMIT_S) == 0
        assert series(served()) == set()
