"""Static checks of the Grafana dashboard and its service.

tests/interop/deployment/test_dashboard.py runs them with Grafana and Prometheus.
"""

from __future__ import annotations

import re
from itertools import combinations

from barnabas.broker.metrics.registry import COLLECTORS
from tests.support.daemon import REPOSITORY
from tests.support.dashboard import FOLDER, dashboard, metric_names, panels, queries

PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"}


def test_every_query_asks_for_metrics_that_the_broker_has() -> None:
    samples = set(PROCESS)
    for collector in COLLECTORS:
        for family in collector.families:
            suffixes = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
            samples.update(family.name + suffix for suffix in suffixes.get(family.kind, ("",)))
    asked = {name: query for query in queries() for name in metric_names(query.expression)}
    assert not {name: query.panel for name, query in asked.items() if name not in samples}


def test_labels_in_queries_are_the_metrics_own() -> None:
    known = {label for collector in COLLECTORS for family in collector.families for label in family.labels}
    known |= {"le", "job", "instance"}
    for query in queries():
        for names in re.findall(r"by \(([^)]*)\)", query.expression):
            assert set(names.replace(" ", "").split(",")) <= known, query
        for selector in re.findall(r"\{([^}]*)\}", query.expression):
            assert set(re.findall(r"(\w+)\s*(?:=|!)", selector)) <= known, query


def test_the_rows_are_what_an_operator_looks_for() -> None:
    rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert rows == [
        "Broker",
        "Traffic",
        "Requests and latency",
        "Logs",
        "Background tasks",
        "Compaction",
        "Consumer groups",
        "Process",
    ]


def test_every_panel_says_what_it_shows_and_in_which_unit() -> None:
    for panel in panels():
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0, panel["title"]


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    every = dashboard()["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    places = [panel["gridPos"] for panel in every]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_every_panel_asks_the_provisioned_prometheus() -> None:
    (source,) = [each for each in dashboard()["templating"]["list"] if each["type"] == "datasource"]
    provisioned = (FOLDER / "provisioning" / "datasources" / "prometheus.yml").read_text()
    assert f"uid: {source['current']['value']}\n" in provisioned
    for panel in panels():
        for each in (panel, *panel["targets"]):
            assert each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]


def test_grafana_starts_only_with_its_profile_and_finds_what_is_mounted() -> None:
    compose = (REPOSITORY / "docker-compose.yml").read_text()
    services = dict(re.findall(r"^  (\w+):\n((?:    .*\n|\n|  #.*\n)+)", compose, re.MULTILINE))
    assert set(services) >= {"broker", "prometheus", "grafana"}
    assert [name for name, lines in services.items() if "profiles: [grafana]" in lines] == ["grafana"]
    mounts = re.findall(r"- \./(\S+):(\S+):ro", services["grafana"])
    assert all((REPOSITORY / ours).is_dir() for ours, _ in mounts)
    targets = {theirs: ours for ours, theirs in mounts}
    home = re.search(r"HOME_DASHBOARD_PATH: (\S+)/barnabas\.json", services["grafana"])
    provider = (FOLDER / "provisioning" / "dashboards" / "barnabas.yml").read_text()
    assert home is not None
    assert targets[home[1]] == "config/grafana/dashboards"
    assert f"path: {home[1]}\n" in provider
    assert "url: http://prometheus:9090\n" in (FOLDER / "provisioning" / "datasources" / "prometheus.yml").read_text()
