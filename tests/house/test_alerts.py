"""Static checks of the alert rules. tests/interop/deployment/test_alerts.py runs their tests with promtool."""

from __future__ import annotations

import re

import click

from barnabas.broker.metrics.registry import COLLECTORS
from barnabas.commands.main import main
from tests.support.alerts import TESTS, alerts
from tests.support.daemon import REPOSITORY
from tests.support.dashboard import metric_names

PROCESS = {"process_open_fds", "process_max_fds"}


def test_every_rule_asks_for_metrics_and_labels_that_the_broker_has() -> None:
    families = {family.name: family for collector in COLLECTORS for family in collector.families}
    for alert in alerts():
        labels = {"instance", "job", "le"}
        for name in metric_names(alert.expression) - PROCESS:
            family = families.get(name) or families[name.removesuffix("_bucket")]
            labels.update(family.labels)
        for names in re.findall(r"(?:by|on) \(([^)]*)\)", alert.expression):
            assert set(names.replace(" ", "").split(",")) <= labels, alert.name
        for selector in re.findall(r"\{([^}]*)\}", alert.expression):
            assert set(re.findall(r"(\w+)\s*(?:=|!)", selector)) <= labels, alert.name
        assert set(re.findall(r"\$labels\.(\w+)", alert.text)) <= labels, alert.name


def test_every_rule_has_a_test_in_which_it_is_silent_and_one_in_which_it_fires() -> None:
    tests = TESTS.read_text()
    for alert in alerts():
        times = re.findall(rf"alertname: {alert.name}\n        exp_alerts:(.*)\n", tests)
        assert times == [" []", ""], alert.name


def test_severities_are_two_and_names_have_the_prefix() -> None:
    assert {alert.severity for alert in alerts()} == {"critical", "warning"}
    assert all(alert.name.startswith("Barnabas") for alert in alerts())
    assert len({alert.name for alert in alerts()}) == len(alerts())


def test_the_commands_in_descriptions_exist() -> None:
    named = 0
    for alert in alerts():
        for words in re.findall(r"`barnabas ([^`]+)`", alert.text):
            found: click.Command = main
            context = click.Context(main)
            for word in words.split():
                if not isinstance(found, click.Group):
                    break
                child = found.get_command(context, word)
                assert child is not None, f"{alert.name}: there is no command barnabas {words}"
                found = child
            named += 1
    assert named >= 7


def test_the_compose_files_prometheus_loads_them() -> None:
    assert "- ./config/alerts.yml:/etc/prometheus/alerts.yml:ro\n" in (REPOSITORY / "docker-compose.yml").read_text()
    assert "rule_files:\n  - alerts.yml\n" in (REPOSITORY / "config" / "prometheus.yml").read_text()
