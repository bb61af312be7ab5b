"""The brokers' properties: shown with their layers, dynamic ones changed."""

from __future__ import annotations

from tests.support.console import ConsoleClient


def test_a_dynamic_property_of_the_broker_is_changed(changing_console: ConsoleClient) -> None:
    assert "log.retention.ms" in changing_console.get("/settings?search=retention").text
    path = "/settings/log.cleaner.threads"
    assert "Set log.cleaner.threads" in changing_console.get(path).text
    assert changing_console.post(path, {"action": "set", "to": "none", "of": "all"}).status == 409
    assert changing_console.post(path, {"action": "set", "to": "2", "of": "all"}).status == 303
    page = changing_console.get(path).text
    assert "<dd>2</dd>" in page
    assert "all brokers, dynamic" in page
    assert changing_console.post(path, {"action": "remove", "of": "all"}).status == 303
    assert "<dd>1</dd>" in changing_console.get(path).text
    assert "It is read when the broker starts" in changing_console.get("/settings/log.dirs").text
    assert changing_console.get("/settings/no.such").status == 404
    assert changing_console.get("/settings?broker=77").status == 404
