"""docs/serve.md and the image: what a reader copies from there works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import yaml
from support.certificates import certificate
from support.requirements import needs

from tpusmi.cli import serve
from tpusmi.exporter.web_config import read_web_config
from tpusmi.model.series_names import EXPORTER_PORT

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")


def example(first_line: str) -> str:
    """The block of YAML on the page that begins with this line."""
    (block,) = re.findall(rf"^```yaml\n({re.escape(first_line)}\n.*?)^```", PAGE, re.DOTALL | re.M)
    assert isinstance(block, str)
    return block


def rules() -> list[dict[str, Any]]:
    whole = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in whole["groups"] for rule in group["rules"]]


def test_the_page_lists_every_alert_and_no_other() -> None:
    named = {*re.findall(r"`(Tpu\w+)`", PAGE)}
    assert named == {rule["alert"] for rule in rules() if "alert" in rule}


@needs("promtool")
def test_prometheus_accepts_the_configuration_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "prometheus.yml").write_text(example("# prometheus.yml"))
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)
    command = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules())} rules" in done.stdout


@needs("openssl")
def test_the_web_configuration_on_the_page_works(tmp_path: Path) -> None:
    certificate(tmp_path)
    shutil.copy(tmp_path / "tls.crt", tmp_path / "clients.crt")
    hashed = bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")
    text = example("# /etc/tpusmi/web.yml").replace("$2y$10$…", hashed)
    for with_all in (False, True):
        path = tmp_path / "web.yml"
        path.write_text(re.sub(r"# (?=client|min)", "", text) if with_all else text)
        found = read_web_config(str(path))
        assert found.context is not None
        assert found.users == {"prometheus": hashed}
        assert len(found.files) == (4 if with_all else 3)


def test_the_monitoring_on_the_page_finds_the_pods_of_the_manifest() -> None:
    monitoring = yaml.safe_load(example("# podmonitoring.yaml"))
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    pods = next(one for one in yaml.safe_load_all(text) if one["kind"] == "DaemonSet")
    template = pods["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert monitoring["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitoring["metadata"]["namespace"] == pods["metadata"]["namespace"]
    (endpoint,) = monitoring["spec"]["endpoints"]
    assert endpoint["port"] in {p["name"] for p in template["spec"]["containers"][0]["ports"]}


def test_the_port_on_the_page_is_the_usual_one() -> None:
    ports = {int(port) for port in re.findall(r"(?:127\.0\.0\.1|tpu-vm-\d):(\d+)", PAGE)}
    assert ports == {serve.PORT} == {EXPORTER_PORT}


@pytest.mark.parametrize("words", re.findall(r"^tpusmi serve(.*?)(?: +#.*)?$", PAGE, re.MULTILINE))
def test_every_command_on_the_page_has_the_options_of_the_program(words: str) -> None:
    serve.parser().parse_args(words.split())


def test_the_image_has_all_that_an_installation_needs(tmp_path: Path) -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    source = tmp_path / "src"
    for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE):
        *names, target = line.split()
        place = tmp_path / target.lstrip("/")
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        extras = archive.read(metadata).decode()
    assert "tpusmi/exporter/catalog.py" in names
    assert "Provides-Extra: serve" in extras
    assert "'/src[serve]'" in text
    words = re.search(r"^CMD \[(.*)\]$", text, re.MULTILINE)
    assert words is not None
    command, *options = yaml.safe_load(f"[{words[1]}]")
    assert command == "serve"
    serve.parser().parse_args(options)
