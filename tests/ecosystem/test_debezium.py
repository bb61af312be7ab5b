"""Debezium: changes of a table in PostgreSQL, by a Connect worker."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import wait_for
from tests.support.ecosystem.flow import Feed
from tests.support.ecosystem.java import jars
from tests.support.ecosystem.postgres import Postgres, running
from tests.support.ecosystem.recipes import recipe
from tests.support.kafka.application import Application
from tests.support.storage.committed_records import committed_records

TOTAL = 4000
TOPIC = "shop.public.orders"


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with running() as server:
        server.execute("create table orders (id integer primary key, state text)")
        yield server


def worker(daemon: Daemon, postgres: Postgres, directory: Path) -> Application:
    """Return a standalone worker with the connector."""
    plugins = directory / "plugins"  # a folder for each
    plugins.mkdir()
    (plugins / "debezium").symlink_to(jars("debezium", Path(__file__).parent / "debezium" / "pom.xml"))
    (directory / "worker.properties").write_text(
        recipe(
            "connect.md",
            broker=daemon.bootstrap,
            plugins=f"plugin.path={plugins}",
            offsets=f"filename={directory / 'offsets'}",
        )
        + "listeners=http://127.0.0.1:0\n"
    )
    (directory / "connector.properties").write_text(recipe("connect.md", 1, port=f"port={postgres.port}"))
    files = [str(directory / f"{name}.properties") for name in ("worker", "connector")]
    return Application(directory / "worker", "org.apache.kafka.connect.cli.ConnectStandalone", files)


@pytest.mark.ecosystem(
    "Debezium", "3.6.1.Final", "connector of PostgreSQL (pgoutput) in a standalone Connect worker, killed too"
)
def test_debezium_loses_no_change_when_the_broker_is_killed(daemon: Daemon, postgres: Postgres, tmp_path: Path) -> None:
    daemon.create_topic(TOPIC, partitions=1)
    with (
        worker(daemon, postgres, tmp_path) as running_worker,
        subprocess.Popen(postgres.psql(), stdin=subprocess.PIPE, text=True) as client,
    ):
        statements = client.stdin
        assert statements is not None
        reads = "select count(*) from pg_replication_slots where active"
        wait_for(lambda: int(postgres.execute(reads)), 1, "connectors read the log")
        with Feed(lambda value: change(statements, int(value.split()[1])), TOTAL) as feed:

            def arrived() -> int:
                feed.arrived = len(changes(daemon))
                return feed.arrived

            for killed in range(2):
                wait_for(arrived, TOTAL // 6 * (killed + 1), "rows have arrived")
                assert feed.running, "everything was written before the broker was killed"
                if killed:
                    running_worker.kill()
                daemon.restart(clean=False)
                if killed:
                    running_worker.start()
        wait_for(arrived, TOTAL, "rows have arrived")
        wait_for(lambda: sum(is_whole(row, found) for row, found in changes(daemon).items()), TOTAL, "rows are whole")


def change(statements: IO[str], row: int) -> None:
    """Insert and update a row; delete every third one."""
    statements.write(f"insert into orders values ({row}, 'new');\nupdate orders set state = 'sent' where id = {row};\n")
    if row % 3 == 0:
        statements.write(f"delete from orders where id = {row};\n")
    statements.flush()


def changes(daemon: Daemon) -> dict[int, str]:
    """Return the operations on each row in the order of the topic: c, u and d."""
    found: dict[int, str] = defaultdict(str)
    for record in committed_records(daemon.data_directory, TOPIC, 0):
        if record.value is not None:  # not the tombstone after a deletion
            found[json.loads(record.key or b"")["id"]] += json.loads(record.value)["op"]
    return found


def is_whole(row: int, operations: str) -> bool:
    """Return whether all changes of a row are there in order. A killed worker repeats its last ones, from there on."""
    expected = "cud" if row % 3 == 0 else "cu"
    rest = iter(operations)
    return all(each in rest for each in expected) and operations.endswith(expected[-1])
