"""The alert rules in promtool, with their tests, and in a Prometheus that scrapes a broker."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.alerts import RULES, TESTS, alerts
from tests.support.daemon import REPOSITORY, start_daemon
from tests.support.interop import need_commands
from tests.support.prometheus import Prometheus

pytestmark = pytest.mark.timeout(300)


def promtool(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    need_commands("promtool")
    return subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the rules, their tests and the configuration, as they are mounted."""
    for path in (RULES, TESTS, REPOSITORY / "config" / "prometheus.yml"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_the_rules_pass_their_tests(copied: Path) -> None:
    done = promtool("test", "rules", TESTS.name, cwd=copied)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", ["vector(0) > 1", "vector(1)"])
def test_rules_that_never_or_always_fire_fail_their_tests(copied: Path, wrong: str) -> None:
    rules = (copied / RULES.name).read_text()
    for alert in alerts():
        rules = rules.replace(f"          {alert.expression}\n", f"          {wrong}\n")
    (copied / RULES.name).write_text(rules)
    done = promtool("test", "rules", TESTS.name, cwd=copied)
    assert done.returncode != 0
    failed = set(re.findall(r"alertname: (\w+)", done.stdout + done.stderr))
    assert failed == {alert.name for alert in alerts()}


def test_the_compose_files_configuration_is_valid_with_them(copied: Path) -> None:
    done = promtool("check", "config", "prometheus.yml", cwd=copied)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"SUCCESS: {len(alerts())} rules found", done.stdout)


def test_a_prometheus_that_scrapes_a_healthy_broker_fires_none(tmp_path: Path) -> None:
    need_commands("prometheus")
    with (
        start_daemon(tmp_path / "daemon", "metrics.group.lag.enable=true") as daemon,
        Prometheus(tmp_path / "prometheus", daemon.metrics_port) as prometheus,
    ):
        prometheus.until("barnabas_log_dir_free_bytes")
        firing = {alert.name for alert in alerts() if prometheus.query(alert.expression)}
        assert firing <= {"BarnabasLogDirFull"}  # if this machine's disk is full
        daemon.stop()
        (down,) = [alert for alert in alerts() if alert.name == "BarnabasDown"]
        assert prometheus.until(down.expression)
