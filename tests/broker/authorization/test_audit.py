"""The audit log: what a line has, its rate, its file's size, and a file that cannot be written."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.authorization.audit import AuditLog, LoggerSink
from barnabas.broker.authorization.audit_file import AuditFile
from barnabas.broker.authorization.audit_shares import NAMED_MAX, OTHERS, PRINCIPALS_MAX, AuditShares
from barnabas.broker.authorization.authorizer import STANDARD_AUTHORIZER, Authorizer
from barnabas.broker.authorization.rules import Action, Decision
from barnabas.broker.printable import MAX_CHARACTERS
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.acls import Acl
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType
from tests.support.daemon import DaemonError, start_daemon

TOPIC = ResourceType.TOPIC
MAY_READ = Acl(TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)


class Lines:
    """A sink in memory, and the clock."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.now_ms = 1_700_000_000_000

    def write(self, line: str) -> None:
        self.entries.append(json.loads(line))

    def close(self) -> None:
        self.entries.append({"closed": True})


def audited(lines: Lines, *, grants: bool = False, max_per_second: int = 100) -> Authorizer:
    audit = AuditLog(lines, grants=grants, max_per_second=max_per_second, wall_ms=lambda: lines.now_ms)
    authorizer = Authorizer(audit=audit)
    authorizer.replace(authorizer.prepare({b"1": MAY_READ}))
    return authorizer


def test_every_denial_is_a_line_and_a_grant_is_none() -> None:
    lines = Lines()
    access = audited(lines).access_for("User:alice", "10.0.0.7")
    for _ in range(2):
        access.allows(Operation.WRITE, TOPIC, "orders", api=ApiKey.PRODUCE)
        access.allows(Operation.READ, TOPIC, "orders", api=ApiKey.FETCH)
        access.allows(Operation.WRITE, TOPIC, "other", api=ApiKey.METADATA, log_denied=False)
    denied = {
        "time": "2023-11-14T22:13:20.000Z",
        "result": "denied",
        "principal": "User:alice",
        "host": "10.0.0.7",
        "api": "produce",
        "operation": "WRITE",
        "resource": "TOPIC",
        "name": "orders",
        "rule": "DefaultDeny",
    }
    assert lines.entries == [denied, denied]


def test_with_grants_each_use_is_a_line_with_its_acl() -> None:
    lines = Lines()
    access = audited(lines, grants=True).access_for("User:alice", "10.0.0.7")
    assert access.read_topic["orders"]
    assert access.read_topic["orders"]
    assert access.allows(Operation.DESCRIBE, TOPIC, "orders", api=ApiKey.LIST_OFFSETS)
    assert [(each["api"], each["operation"], each["rule"]) for each in lines.entries] == [
        ("fetch", "READ", "MatchingAcl"),
        ("fetch", "READ", "MatchingAcl"),
        ("list_offsets", "DESCRIBE", "MatchingAcl"),
    ]
    assert lines.entries[0]["acl"] == {
        "resource": "TOPIC",
        "name": "orders",
        "pattern": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }


def test_lines_above_the_rate_are_counted() -> None:
    lines = Lines()
    authorizer = audited(lines, max_per_second=6)
    access = authorizer.access_for("User:bob", "10.0.0.7")
    for _ in range(10):
        access.allows(Operation.READ, TOPIC, "orders", api=ApiKey.FETCH)
    assert len(lines.entries) == 3
    lines.now_ms += 1000
    access.allows(Operation.READ, TOPIC, "orders", api=ApiKey.FETCH)
    found = [(each["result"], each["principal"], each.get("count")) for each in lines.entries[3:]]
    assert found == [("suppressed", "User:bob", 7), ("denied", "User:bob", None)]
    for _ in range(5):
        access.allows(Operation.READ, TOPIC, "orders", api=ApiKey.FETCH)
    authorizer.close()
    assert lines.entries[-2]["count"] == 3
    assert lines.entries[-1] == {"closed": True}


def test_the_flood_of_some_principals_does_not_hide_another_one() -> None:
    lines = Lines()
    authorizer = audited(lines, max_per_second=100)
    for second in range(3):
        for flooding in ("User:mallory", "User:mallet"):
            access = authorizer.access_for(flooding, "10.0.0.7")
            for _ in range(1_000):
                access.allows(Operation.READ, TOPIC, "orders", api=ApiKey.FETCH)
        victim = authorizer.access_for("User:bob", "10.0.0.8")
        for _ in range(10):
            victim.allows(Operation.READ, TOPIC, "orders", api=ApiKey.FETCH)
        lines.now_ms += 1000
        denied = [each["principal"] for each in lines.entries if each["result"] == "denied"]
        assert denied.count("User:bob") == 10 * (second + 1)
        assert len(denied) <= 100 * (second + 1)


def test_a_flood_of_principals_is_bounded_in_lines_and_memory() -> None:
    shares = AuditShares(20)
    admitted = sum(shares.admit(f"User:{number}") for number in range(5_000) for _ in range(2))
    assert admitted == 20
    assert len(shares._tried) == PRINCIPALS_MAX + 1
    suppressed = shares.end_second()
    assert len(suppressed) == NAMED_MAX + 1
    assert suppressed[-1][0] == OTHERS
    assert sum(count for _, count in suppressed) == 10_000 - 20
    assert shares.end_second() == []


def test_a_denial_is_decided_once_and_a_remembered_one_only_for_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.broker.authorization.cached_access.NAMES_MAX", 3)
    decided: list[str] = []
    lines = Lines()
    authorizer = audited(lines, max_per_second=8)
    decide = authorizer.decide

    def decide_and_note(action: Action) -> Decision:
        decided.append(action.name)
        return decide(action)

    monkeypatch.setattr(authorizer, "decide", decide_and_note)
    access = authorizer.access_for("User:bob", "10.0.0.7")

    def deny(*names: str) -> list[str]:
        decided.clear()
        for name in names:
            assert not access.allows(Operation.READ, TOPIC, name, api=ApiKey.FETCH)
        return list(decided)

    assert deny("a", "b", "c") == ["a", "b", "c"]
    assert deny("a", "b") == ["a"]  # the fourth and last line of this second
    assert deny("d", "e", "a", "b", "c", "d") == ["d", "e", "d"]  # names beyond the limit leave the others remembered
    assert [each["name"] for each in lines.entries] == ["a", "b", "c", "a"]


def test_a_full_file_is_renamed_and_no_line_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text('{"from": "an earlier run"}\n')
    file = AuditFile(path, max_bytes=400)
    for number in range(7):
        file.write(json.dumps({"number": number, "padding": "x" * 60}))
        file.flush()
    file.close()
    older = (tmp_path / "audit.log.1").read_text().splitlines()
    newer = path.read_text().splitlines()
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "audit.log.1"]
    assert [json.loads(line).get("number") for line in [*older, *newer]] == [None, *range(7)]
    assert len(newer) < 7


def test_a_file_that_cannot_be_written_is_reported_once_and_written_again_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "audit.log"
    file = AuditFile(path, max_bytes=1)  # so each line begins a new file
    moved = folder.rename(tmp_path / "gone")
    for _ in range(2):
        file.write("{}")
        file.flush()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    moved.rename(folder)
    file.write('{"again": true}')
    file.close()
    assert "again" in path.with_name("audit.log.1").read_text()


def test_without_a_file_the_lines_go_to_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "barnabas.audit"):
        LoggerSink().write("{}")
    assert [(each.name, each.levelname, each.message) for each in caplog.records] == [("barnabas.audit", "INFO", "{}")]


def test_an_audit_log_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "audit.log"
    with pytest.raises(
        DaemonError, match=r"cannot open the audit log .* \(audit\.log\.path\): No such file or directory"
    ):
        start_daemon(tmp_path, f"authorizer.class.name={STANDARD_AUTHORIZER}", f"audit.log.path={path}")


def test_long_names_are_cut() -> None:
    lines = Lines()
    user = "User:" + "a" * 30_000
    audit = audited(lines, max_per_second=2)
    for _ in range(2):
        audit.access_for(user, "10.0.0.7").allows(Operation.READ, TOPIC, "\x01" * 32_000)
    lines.now_ms += 1_000
    audit.access_for("User:bob", "10.0.0.7").allows(Operation.READ, TOPIC, "x")
    assert lines.entries[0]["name"] == "\x01" * MAX_CHARACTERS + "..."
    assert lines.entries[0]["principal"] == lines.entries[1]["principal"] == user[:MAX_CHARACTERS] + "..."
    assert [each["result"] for each in lines.entries] == ["denied", "suppressed", "denied"]
