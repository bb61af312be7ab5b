"""The pytest plugin: a real broker for a test session, and a fresh topic for each test. No configuration is needed.

    def test_orders_arrive(barnabas_broker, barnabas_topic):
        topic = barnabas_topic(partitions=3)
        producer = confluent_kafka.Producer({"bootstrap.servers": barnabas_broker.bootstrap})

Fixtures:
    barnabas_broker         session; a `BrokerProcess`, started by the first test that uses it
    barnabas_topic          a function that creates a topic with a fresh name and returns the name
    barnabas_secure_broker  session; a `SecureBrokerProcess`, with TLS and users
    barnabas_settings       session; override it in a conftest.py to set other broker properties

When a test fails, its report shows what the broker logged meanwhile. pytest finds this module by its entry point
(group pytest11); nothing else imports it, so that the broker does not depend on pytest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from barnabas.clients.broker_process import BrokerProcess

if TYPE_CHECKING:
    from barnabas.clients.secure_testing import SecureBrokerProcess

_NOT_IN_A_TOPIC_NAME = re.compile(r"[^a-zA-Z0-9._-]+")
_NAME_CHARACTERS = 80
_BROKERS = pytest.StashKey[dict[str, BrokerProcess]]()
"""The running brokers by the names of their fixtures."""
_LOG_POSITIONS = pytest.StashKey[dict[str, int]]()
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def barnabas_settings() -> Mapping[str, object]:
    """Return properties of the session's broker; override this fixture to set some."""
    return {}


@pytest.fixture(scope="session")
def barnabas_broker(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    barnabas_settings: Mapping[str, object],
) -> Iterator[BrokerProcess]:
    """A running broker for the whole session, on a free port; pass `.bootstrap` to a client."""
    with BrokerProcess(tmp_path_factory.mktemp("barnabas"), barnabas_settings) as running:
        request.config.stash.setdefault(_BROKERS, {})["barnabas_broker"] = running
        yield running


@pytest.fixture(scope="session")
def barnabas_secure_broker(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    barnabas_settings: Mapping[str, object],
) -> Iterator[SecureBrokerProcess]:
    """A running broker with TLS and users for the whole session; pass `.client_properties` to a client."""
    from barnabas.clients.secure_testing import SecureBrokerProcess

    with SecureBrokerProcess(tmp_path_factory.mktemp("barnabas-secure"), barnabas_settings) as running:
        request.config.stash.setdefault(_BROKERS, {})["barnabas_secure_broker"] = running
        yield running


@pytest.fixture
def barnabas_topic(request: pytest.FixtureRequest, barnabas_broker: BrokerProcess) -> Callable[..., str]:
    """`barnabas_topic(partitions=1, **configs)`: create a topic, return its name; `_` stands for `.` in configs."""
    stem = _NOT_IN_A_TOPIC_NAME.sub("-", request.node.name).strip("-")[:_NAME_CHARACTERS]

    def make(partitions: int = 1, **configs: object) -> str:
        name = f"{stem}-{next(_numbers)}"
        named = {key.replace("_", "."): str(value) for key, value in configs.items()}
        barnabas_broker.create_topic(name, partitions=partitions, configs=named)
        return name

    return make


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the sizes of the brokers' logs, so that a failure shows only the part written during this test."""
    brokers = item.config.stash.get(_BROKERS, {})
    item.stash[_LOG_POSITIONS] = {name: running.log_path.stat().st_size for name, running in brokers.items()}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the broker's log to the report of a failure."""
    report = yield
    if not report.failed:
        return report
    for name, running in item.config.stash.get(_BROKERS, {}).items():
        if name not in getattr(item, "fixturenames", ()):
            continue
        with running.log_path.open("rb") as log:
            log.seek(item.stash.get(_LOG_POSITIONS, {}).get(name, 0))
            report.sections.append((f"barnabas broker ({running.log_path})", log.read().decode(errors="replace")))
    return report
