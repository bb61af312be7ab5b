"""rsyslog with omkafka: the lines of a growing file become records."""

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


# Without these settings it drops lines from the moment at which librdkafka says that all brokers are down.
@pytest.mark.ecosystem(
    "rsyslog",
    "",
    "omkafka, lines of a file",
    '`action.resumeRetryCount="-1"`, `action.resumeInterval="1"` and `resubmitOnFailure="on"`, or it drops lines while '
    "no broker is there",
)
def test_rsyslog_delivers_each_line_when_the_broker_is_killed(
    daemon: Daemon, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rsyslog = unpacked("rsyslog", "rsyslog-kafka")
    record_property("version", rsyslog.version)
    directory = tmp_path / "rsyslog"
    directory.mkdir()
    configuration = directory / "rsyslog.conf"
    lines = directory / "lines.log"
    configuration.write_text(
        f'global(workDirectory="{directory}")\n'
        + recipe("rsyslog.md", broker=daemon.bootstrap, file=str(lines), topic=f'"{OUTPUT}"')
    )
    (modules,) = rsyslog.root.rglob("omkafka.so")
    command = [str(rsyslog.root / "usr/sbin/rsyslogd"), "-n", "-f", str(configuration), "-i", str(directory / "pid")]
    environ = {"LD_LIBRARY_PATH": rsyslog.libraries}
    daemon.create_topic(OUTPUT, partitions=PARTITIONS)

    with Program(directory, [*command, "-M", str(modules.parent)], environ) as program:
        carry_through_kills(daemon, program, append_to(lines), kills_program=False)
