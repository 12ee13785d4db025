"""The files of deploy/: rules that fire when they should, a dashboard whose graphs have numbers,
and manifests that start the command as it is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.commands import TPUSMI
from support.requirements import needs
from support.scrapers import LIMIT_S, Exporting, Prometheus, exporting, get, job, prometheus
from support.waits import until

from tpusmi.cli import serve
from tpusmi.exporter.catalog import KINDS
from tpusmi.simulate.host import HostPlan, start

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "alerts.yml"
RULE_TESTS = Path(__file__).with_name("alerts.test.yml")
NAME = re.compile(r"\btpusmi_\w+")
NOBODY = 65534


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)


def alerts() -> dict[str, Any]:
    whole = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    rules = [rule for group in whole["groups"] for rule in group["rules"]]
    return {rule["alert"]: rule for rule in rules if "alert" in rule}


def manifests() -> dict[str, Any]:
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def panels() -> list[dict[str, Any]]:
    whole = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    return [panel for panel in whole["panels"] if panel["type"] != "row"]


# -- alerts


@needs("promtool")
def test_promtool_accepts_the_rules_and_their_tests() -> None:
    for arguments in (("check", "rules", RULES), ("test", "rules", RULE_TESTS)):
        done = promtool(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "FAILED" not in done.stdout + done.stderr


def test_the_tests_of_the_rules_fire_every_alert() -> None:
    whole = yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))
    cases = [case for test in whole["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == {*alerts()}


def test_every_series_that_a_rule_or_a_graph_needs_is_exported() -> None:
    for path in (RULES, RULE_TESTS, DEPLOY / "grafana.json"):
        names = {*NAME.findall(path.read_text(encoding="utf-8"))}
        assert names - {*KINDS} == set()
        assert len(names) >= 8


def test_every_alert_says_what_it_is_and_what_to_do() -> None:
    for name, rule in alerts().items():
        assert {*rule["annotations"]} == {"summary", "description"}, name
        assert rule["labels"]["severity"] in ("warning", "critical")


# -- a real Prometheus over a host in trouble


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporting]:
    faults = ("throttle:4", "bad-link:8")
    with start(HostPlan("v5e-4", agent=True, faults=faults)) as host:
        directory = tmp_path_factory.mktemp("exporter")
        with exporting(directory, "--simulate", host.root, "--slice", "pod-7") as found:
            found.wait_until_ready()
            until(lambda: "tpusmi_process_steps_total" in get(found.url).text, LIMIT_S, "steps")
            yield found


@pytest.fixture(scope="module")
def server(exporter: Exporting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    jobs = [job(f"127.0.0.1:{exporter.port}", "127.0.0.1:9")]
    with prometheus(directory, jobs, [RULES]) as found:
        found.wait_until('tpusmi_process_steps_total{slice="pod-7"}')
        yield found


@needs("prometheus")
def test_a_host_in_trouble_raises_the_alerts_of_its_troubles_and_no_others(
    server: Prometheus,
) -> None:
    def raised() -> set[str]:
        return {labels["alertname"] for labels, _ in server.query("ALERTS")}

    expected = {"TpuThrottled", "TpuLinkBad", "TpusmiDown"}
    until(lambda: raised() == expected, 2 * LIMIT_S, "the alerts and no others")
    groups = server.api("rules")["groups"]
    assert {
        rule["lastError"] for group in groups for rule in group["rules"] if "lastError" in rule
    } <= {""}


@needs("prometheus")
def test_every_graph_of_the_dashboard_asks_what_prometheus_understands(server: Prometheus) -> None:
    empty = []
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"].replace("$host", ".*").replace("$job_name", ".*")
            assert "$" not in expression
            if not server.query(expression):
                empty.append(f"{panel['title']}: {expression}")
    # One device for each chip, one host, and an agent that has been there for seconds.
    absent = r"tpusmi_chip_|tpusmi_network_|tpusmi_slice_|rate\(|mfu"
    assert all(re.search(absent, text) for text in empty), empty


@needs("prometheus")
def test_no_number_of_the_dashboard_is_0_where_no_exporter_answers(server: Prometheus) -> None:
    stats = [panel for panel in panels() if panel["type"] == "stat"]
    assert len(stats) >= 6
    for panel in stats:
        (target,) = panel["targets"]
        whole = target["expr"].replace("$job_name", ".*")
        assert server.query(whole.replace("$host", "nobody")) == [], panel["title"]
        ((labels, _),) = server.query(whole.replace("$host", ".*"))
        assert labels == {}


@needs("promtool")
def test_the_dashboard_counts_chips_of_which_only_the_whole_is_measured(tmp_path: Path) -> None:
    """Idle chips and TensorCores of v2 and v3 have no series of their devices."""
    series = {
        'tpusmi_chip_idle_seconds{host="v2", chip="0"}': 3600,
        'tpusmi_chip_idle_seconds{host="v2", chip="1"}': 1,
        'tpusmi_idle_seconds{host="v5e", chip="0", device="0"}': 3600,
        'tpusmi_chip_holders{host="v2", chip="0"}': 1,
        'tpusmi_chip_holders{host="v2", chip="1"}': 1,
        'tpusmi_chip_holders{host="v5e", chip="0"}': 1,
        'tpusmi_chip_tensorcore_utilization_ratio{host="v2", chip="0"}': 0.2,
        'tpusmi_tensorcore_utilization_ratio{host="v5e", chip="0", device="0"}': 0.4,
    }
    numbers = {"Held and idle for 15 minutes": 2, "Mean TensorCore utilization": 0.3}
    expressions = {p["title"]: p["targets"][0]["expr"].replace("$host", ".*") for p in panels()}
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{v}x9"} for name, v in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({expressions[title]}, 0.01)",
                "eval_time": "5m",
                "exp_samples": [{"labels": "{}", "value": number}],
            }
            for title, number in numbers.items()
        ],
    }
    path = tmp_path / "graphs.test.yml"
    path.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [case]}))
    done = promtool("test", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_is_what_its_script_writes() -> None:
    script = ROOT / "assets" / "make_dashboard.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_panel_of_the_dashboard_covers_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


# -- manifests


def test_the_pods_start_the_command_with_options_that_it_has() -> None:
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command, *words = container["args"]
    assert command == "serve"
    options = serve.parser().parse_args([w.replace("$(NODE_NAME)", "node-1") for w in words])
    assert (options.bind, options.host_name) == ("0.0.0.0", "node-1")
    assert [p["containerPort"] for p in container["ports"]] == [options.port] == [serve.PORT]
    assert {e["name"] for e in container["env"]} == {"NODE_NAME"}
    paths = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("readiness", "liveness")}
    assert paths == {"/-/ready", "/-/healthy"}


def test_the_pods_see_all_holders_and_take_no_chip() -> None:
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["hostPID"] is True
    assert {"key": "google.com/tpu", "operator": "Exists"} in pod["tolerations"]
    assert not any("google.com/tpu" in r for r in container["resources"].values())
    security = container["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert not security["allowPrivilegeEscalation"]
    assert all(m.get("readOnly") for m in container["volumeMounts"] if m["name"] != "tmp")


def test_the_monitor_finds_the_pods() -> None:
    whole = manifests()
    pods = whole["DaemonSet"]["spec"]
    labels = pods["template"]["metadata"]["labels"]
    monitor = whole["PodMonitor"]["spec"]
    for selector in (
        pods["selector"],
        monitor["selector"],
        whole["NetworkPolicy"]["spec"]["podSelector"],
    ):
        assert selector["matchLabels"].items() <= labels.items()
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] == pods["template"]["spec"]["containers"][0]["ports"][0]["name"]
    namespace = whole["Namespace"]["metadata"]["name"]
    assert monitor["namespaceSelector"]["matchNames"] == [namespace]
    assert {w["metadata"].get("namespace", namespace) for w in whole.values()} == {namespace}
    # The alert on an exporter that is down knows the job by this name.
    assert re.search(r'job=~"\(\.\*/\)\?tpusmi"', alerts()["TpusmiDown"]["expr"])
    assert whole["PodMonitor"]["metadata"]["name"] == "tpusmi"


def unit() -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for line in (DEPLOY / "tpusmi.service").read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            settings.setdefault(name, []).append(value)
    return settings


@needs("systemd-analyze")
def test_systemd_accepts_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    (command,) = unit()["ExecStart"]
    program, subcommand, *words = command.split()
    assert subcommand == "serve"
    serve.parser().parse_args(words)
    text = (DEPLOY / "tpusmi.service").read_text(encoding="utf-8")
    copy = tmp_path / "tpusmi.service"
    copy.write_text(text.replace(program, "/bin/true"))
    for words in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=35"]):
        done = subprocess.run(
            ["systemd-analyze", *words, copy], capture_output=True, text=True, timeout=60
        )
        if "not supported" in done.stderr or "invalid option" in done.stderr:
            pytest.skip("an older systemd")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr


@needs("setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hand out capabilities")
def test_with_the_rights_of_the_unit_it_sees_the_holders_of_others(tmp_path: Path) -> None:
    (names,) = unit()["AmbientCapabilities"]
    assert unit()["CapabilityBoundingSet"] == [names]
    few = ",".join(f"+{name.lower().removeprefix('cap_')}" for name in names.split())
    rights = [f"--{kind}={few}" for kind in ("inh-caps", "ambient-caps")]
    prefix = [
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        *(*rights, f"--bounding-set=-all,{few}", "--no-new-privs"),
    ]
    works = subprocess.run([*prefix, *TPUSMI, "--version"], capture_output=True)
    if works.returncode:
        pytest.skip("that user cannot run our Python")
    tmp_path.chmod(0o755)
    with start(HostPlan("v5e-1")) as host:
        os.chmod(host.root, 0o755)
        with exporting(tmp_path, "--simulate", host.root, prefix=prefix) as found:
            found.wait_until_ready()

            def sees_all() -> bool:
                """Another test may have processes of which nobody sees all for a moment."""
                text = get(found.url).text
                assert re.search(r'^tpusmi_chip_holders\{.*chip="0".*\} 1\.0$', text, re.MULTILINE)
                all_seen = r"^tpusmi_not_inspected_processes\{.*\} 0\.0$"
                return re.search(all_seen, text, re.MULTILINE) is not None

            until(sees_all, LIMIT_S, "no process that could not be inspected")
