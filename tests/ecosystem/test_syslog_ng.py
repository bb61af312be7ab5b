"""syslog-ng with kafka-c(): the lines of a growing file become records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.ecosystem.debian import unpacked
from tests.support.ecosystem.exchange import PARTITIONS
from tests.support.ecosystem.flow import OUTPUT, append_to, carry_through_kills
from tests.support.ecosystem.recipes import recipe
from tests.support.program import Program

Record = Callable[[str, object], None]


@pytest.mark.ecosystem("syslog-ng", "", "kafka-c(), lines of a file")
def test_syslog_ng_delivers_each_line_when_the_broker_is_killed(
    daemon: Daemon, tmp_path: Path, record_property: Record
) -> None:
    deliver(daemon, tmp_path / "syslog-ng", record_property, sync_send=False)


@pytest.mark.ecosystem("syslog-ng", "", "kafka-c() with sync-send(yes), lines of a file")
def test_syslog_ng_that_waits_for_each_delivery_delivers_each_line_when_the_broker_is_killed(
    daemon: Daemon, tmp_path: Path, record_property: Record
) -> None:
    deliver(daemon, tmp_path / "syslog-ng", record_property, sync_send=True)


def deliver(daemon: Daemon, directory: Path, record_property: Record, *, sync_send: bool) -> None:
    """Run syslog-ng in a directory while the broker is killed."""
    syslog_ng = unpacked("syslog-ng-core", "syslog-ng-mod-rdkafka")
    record_property("version", syslog_ng.version)
    directory.mkdir()
    configuration = directory / "syslog-ng.conf"
    lines = directory / "lines.log"
    text = recipe("syslog-ng.md", broker=daemon.bootstrap, file=str(lines), topic=f'"{OUTPUT}"')
    if sync_send:
        text = text.replace("sync-send(no)", "sync-send(yes)")
    configuration.write_text(f"@version: {'.'.join(syslog_ng.version.split('.')[:2])}\n{text}")
    (modules,) = syslog_ng.root.rglob("libkafka.so")
    command = [str(syslog_ng.root / "usr/sbin/syslog-ng"), "--foreground", "--no-caps", "--stderr"]
    files = [f"--{name}={directory / name}" for name in ("persist-file", "pidfile", "control")]
    options = ["--cfgfile", str(configuration), "--module-path", str(modules.parent), *files]
    environ = {"LD_LIBRARY_PATH": syslog_ng.libraries}
    daemon.create_topic(OUTPUT, partitions=PARTITIONS)

    with Program(directory, [*command, *options], environ) as program:
        carry_through_kills(daemon, program, append_to(lines), kills_program=False)
