"""Metrics that clients push to the broker, on a page of the console."""

from __future__ import annotations

import html
import re
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from tests.support.console import ConsoleClient, running_console
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.telemetry import ask, delta, gauge, metrics_data, push, subscribe


def test_what_clients_push_is_shown_and_searched(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "client.metrics.enable=true") as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            kafka.call("api_versions", 3, client_software_name="pusher", client_software_version="1")
            subscribe(kafka, "all", metrics="*", interval_ms="60000")
            data = metrics_data(gauge("latency.<b>avg", 0.0123456789, node_id="1&2"), delta("sent.total", 1_234_567))
            assert push(kafka, ask(kafka), data) == ErrorCode.NONE
        with running_console(daemon.bootstrap, log=tmp_path / "stderr") as console:
            page = console.get("/client-metrics").text
            assert "latency.&lt;b&gt;avg" in page
            assert cells(page) == [["latency.<b>avg", "node_id=1&2", "0.0123457"], ["sent.total", "", "1,234,567"]]
            assert cells(console.get("/client-metrics?sort=value&order=desc").text)[0][0] == "sent.total"
            found = console.get("/client-metrics?search=NODE_ID").text
            assert ("1 of 2 values" in found, len(cells(found))) == (True, 1)

            def told() -> bool:
                return ">2 values of their own metrics</a>" in console.get("/").text

            eventually(told, what="an inspection that counts the values")


def test_without_pushes_the_page_says_what_to_set(broker: Daemon, console: ConsoleClient) -> None:
    page = console.get("/client-metrics").text
    assert "A broker with client.metrics.enable=true asks its clients" in page
    assert "<table>" not in page


def cells(page: str) -> list[list[str]]:
    """Metric, attributes and value of each row."""
    rows = re.findall(r"<tr><th scope=\"row\">wire</th>(.*)</tr>", page)
    return [[html.unescape(each) for each in re.findall(r"<td[^>]*>([^<]*)</td>", row)[1:]] for row in rows]
