"""Quotas of users, and of users with client ids, beside Apache Kafka: which quota applies, and who shares it.

Both brokers run at the same time with the same SASL users and quotas, and the same clients connect to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.sasl.plain import PLAIN, PlainClient
from tests.interop.security.test_quotas import PRODUCER_PERFORMANCE
from tests.interop.security.test_quotas_kafka import WINDOWS, Client, Side, Sides, assert_close, of_both, start_topics
from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.sasl_wire import SaslWire

pytestmark = pytest.mark.timeout(300)

USERS = ("alice", "bob", "carol", "dan", "java")
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{user}="{user}"' for user in USERS
)
REQUEST_BYTES = 200_000
"""More than ten seconds of each quota, so that two quotas have throttle times which differ by more than a second."""

ANY = None
Entity = Mapping[str, str | None]
QUOTAS: tuple[tuple[Entity, int], ...] = (
    ({"user": "alice", "client-id": "app"}, 10_000),
    ({"user": "alice", "client-id": ANY}, 12_000),
    ({"user": "alice"}, 99_000),
    ({"user": "bob"}, 14_000),
    ({"user": "dan"}, 14_000),
    ({"user": ANY, "client-id": "app"}, 16_000),
    ({"user": ANY, "client-id": ANY}, 18_000),
    ({"user": ANY}, 98_000),
    ({"client-id": "app"}, 97_000),
)
"""`producer_byte_rate` by entity; those above 90,000 are hidden by others."""

APPLIES = {
    ("alice", "app"): 10_000,
    ("alice", "other"): 12_000,
    ("bob", "app"): 14_000,
    ("carol", "app"): 16_000,
    ("carol", "other"): 18_000,
}
JAVA_RATE = 200_000
RECORD_BYTES = 10_000
RATE_FACTOR = 2
"""The largest ratio of the two rates: both producers and both brokers run at the same time."""


class UserClient(Client, SaslWire):
    """A connection of a user, with a client id."""

    def __init__(self, port: int, user: str, client_id: str) -> None:
        super().__init__(port, client_id)
        assert self.login(PLAIN, PlainClient(user, user)).error_code == 0


def set_quota(admin: KafkaWire, entity: Entity, rate: int) -> None:
    kio = schema("alter_client_quotas", 1, "request")
    data = tuple(kio.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items())
    operation = kio.OpData(key="producer_byte_rate", value=float(rate), remove=False)
    entries = (kio.EntryData(entity=data, ops=(operation,)),)
    answer = admin.call("alter_client_quotas", 1, entries=entries, validate_only=False)
    assert [entry.error_code for entry in answer.entries] == [0]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    kafka = Kafka("4.3.0", tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("kafka"))
    kafka.settings |= {
        "quota.window.num": str(WINDOWS),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f"{JAAS};",
    }
    kafka.extra_listeners["USERS"] = "SASL_PLAINTEXT"
    kafka.format()
    return kafka


@pytest.fixture(scope="module")
def sides(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Apache Kafka and Barnabas; `port` is that of the SASL listener, and `admin` is connected without it."""
    with ExitStack() as stack:
        theirs = stack.enter_context(kafka.running())
        ours = stack.enter_context(
            start_daemon(
                tmp_path_factory.mktemp("barnabas"),
                f"quota.window.num={WINDOWS}",
                "listeners=PLAINTEXT://127.0.0.1:0,USERS://127.0.0.1:0",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms=PLAIN",
                f"listener.name.users.plain.sasl.jaas.config={JAAS};",
            )
        )
        (port,) = re.findall(r"listening, listener=USERS\S+ port=(\d+)", ours.log)
        both = []
        for plain_port, user_port in ((theirs.port, kafka.extra_ports["USERS"]), (ours.port, int(port))):
            admin = stack.enter_context(KafkaWire("127.0.0.1", plain_port))
            start_topics(Side(plain_port, admin), "wire", "java")
            for entity, rate in QUOTAS:
                set_quota(admin, entity, rate)
            set_quota(admin, {"user": "java"}, JAVA_RATE)
            # Kafka's broker has read the quotas when it leads a partition that was created after them.
            start_topics(Side(plain_port, admin), "after-the-quotas")
            both.append(Side(user_port, admin))
        yield both[0], both[1]


def produced(side: Side, user: str, client_id: str) -> timedelta:
    """Produce one record; return the throttle time."""
    with UserClient(side.port, user, client_id) as client:
        return client.produced(REQUEST_BYTES)


def test_the_same_quota_applies_to_each_user_and_client_id(sides: Sides) -> None:
    for (user, client_id), rate in APPLIES.items():
        theirs, ours = of_both(sides, partial(produced, user=user, client_id=client_id))
        assert_close(theirs, ours)
        assert abs(ours - timedelta(seconds=REQUEST_BYTES / rate - 1)) < timedelta(seconds=1), (user, client_id, ours)


def test_the_client_ids_of_a_user_share_its_quota_and_pairs_do_not(sides: Sides) -> None:
    def measure(side: Side) -> list[timedelta]:
        return [produced(side, user, client_id) for user in ("dan", "carol") for client_id in ("one", "two")]

    theirs, ours = of_both(sides, measure)
    for their_time, our_time in zip(theirs, ours, strict=True):
        assert_close(their_time, our_time)
    assert ours[1] > ours[0] + timedelta(seconds=5)
    assert abs(ours[3] - ours[2]) < timedelta(seconds=1)


def test_kafkas_producer_has_the_rate_of_its_user_at_both(sides: Sides, kafka: Kafka, tmp_path: Path) -> None:
    records = 5 * JAVA_RATE // RECORD_BYTES

    def measure(side: Side) -> tuple[float, float]:
        properties = tmp_path / f"{side.port}.properties"
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        properties.write_text(
            f"bootstrap.servers=127.0.0.1:{side.port}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={login} username="java" password="java";\n'
            f"batch.size={RECORD_BYTES}\nmax.in.flight.requests.per.connection=1\n"
        )
        said = kafka.tool(
            PRODUCER_PERFORMANCE, "--topic", "java", "--num-records", str(records), "--record-size", str(RECORD_BYTES),
            "--throughput", "-1", "--command-config", str(properties), "--print-metrics",
        )  # fmt: skip
        return _last_number(said, "records sent, "), _last_number(said, "produce-throttle-time-max.*: ")

    (their_rate, their_throttle), (our_rate, our_throttle) = of_both(sides, measure)
    assert their_throttle > 0
    assert our_throttle > 0
    assert 1 / RATE_FACTOR < our_rate / their_rate < RATE_FACTOR, (their_rate, our_rate)


def _last_number(text: str, before: str) -> float:
    found: list[Any] = re.findall(f"{before}([0-9.]+)", text)
    return float(found[-1])
