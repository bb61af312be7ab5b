"""ShareConsumer over TLS, as users with and without rights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest
from click.testing import CliRunner

from barnabas import (
    AuthenticationError,
    ErrorCode,
    Producer,
    ProducerConfig,
    RefusedError,
    SecuritySettings,
    ShareConsumer,
    ShareConsumerConfig,
)
from barnabas.clients.secure_testing import SecureBrokerProcess
from barnabas.commands.main import main

BOUND_S = 30.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBrokerProcess]:
    directory = tmp_path_factory.mktemp("secure")
    with SecureBrokerProcess(directory, {"share.coordinator.state.topic.num.partitions": 1}) as process:
        for topic in ("jobs", "closed-topic"):
            process.create_topic(topic)
        config = directory / "client.properties"
        lines = [f"{name}={value}" for name, value in process.client_properties.items()]
        config.write_text("".join(line.replace("\n", "\\n") + "\n" for line in lines))
        for kind in ("group", "topic"):
            rule = ["--principal", "User:admin", f"--{kind}", f"closed-{kind}", "--operation", "all"]
            done = CliRunner().invoke(main, ["acl", "add", *rule, "--command-config", str(config)])
            assert done.exit_code == 0, done.output
        yield process


def consumer(properties: Mapping[str, str], group: str) -> ShareConsumer:
    return ShareConsumer(
        ShareConsumerConfig(
            bootstrap=properties["bootstrap.servers"],
            group=group,
            security=SecuritySettings.from_properties(properties),
        )
    )


async def test_a_user_reads_over_tls(running: SecureBrokerProcess) -> None:
    properties = await asyncio.to_thread(running.add_user, "alice", "password")
    async with asyncio.timeout(BOUND_S), consumer(properties, "packers") as queue:
        await queue.subscribe(["jobs"])
        reading = asyncio.ensure_future(anext(queue))
        while not queue.assignment:
            await asyncio.sleep(0.01)
        security = SecuritySettings.from_properties(properties)
        async with Producer(ProducerConfig(bootstrap=running.bootstrap, security=security)) as producer:
            while not reading.done():  # the group begins with what comes after its first fetch
                await producer.send_and_wait("jobs", b"a")
                await asyncio.sleep(0.01)
        assert (await reading).value == b"a"


async def test_a_wrong_password_is_told_at_the_start(running: SecureBrokerProcess) -> None:
    properties = await asyncio.to_thread(running.add_user, "bob", "password")
    await asyncio.to_thread(running.add_user, "bob", "another")
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        await consumer(properties, "packers").start()


@pytest.mark.parametrize(
    ("topic", "group", "code"),
    [
        ("jobs", "closed-group", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("closed-topic", "packers", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
async def test_a_user_without_the_right_is_told_so(
    running: SecureBrokerProcess, topic: str, group: str, code: ErrorCode
) -> None:
    properties = await asyncio.to_thread(running.add_user, "carol", "password")

    async def read() -> None:
        async with asyncio.timeout(BOUND_S), consumer(properties, group) as queue:
            await queue.subscribe([topic])
            await anext(queue)

    with pytest.raises(RefusedError) as caught:
        await read()
    assert caught.value.code is code
