"""The client properties of a mirror: which files are read, where secrets do not appear, a source with TLS and SCRAM."""

from __future__ import annotations

import logging
import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.broker.mirrors.client_config import client_config
from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import ClientConfigError
from barnabas.clients.producer.producer import Producer
from barnabas.clients.testing import secure_broker
from barnabas.protocol.mirrors.definition import MirrorDefinition
from tests.support.daemon import start_daemon
from tests.support.mirrors.copies import MIRROR, admin_of, has_copied, segments, until

SECRET = "canary-0451"
PLAIN = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
LOGIN = f"{PLAIN}sasl.username=mirror\nsasl.password={SECRET}\n"


def definition(path: Path) -> MirrorDefinition:
    return MirrorDefinition("m", ("h:9092",), ("t",), command_config=str(path))


def test_what_is_not_a_small_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(1 << 21))
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(ClientConfigError, match=f"{path} is not a regular file"):
            client_config(definition(path))
    with pytest.raises(ClientConfigError, match="large has 2097152 bytes, more than"):
        client_config(definition(tmp_path / "large"))
    with pytest.raises(FileNotFoundError):
        client_config(definition(tmp_path / "none"))


@pytest.mark.parametrize(
    "content",
    [
        f"{SECRET}\n",
        f"root:{SECRET}:19000:0:99999:7:::\n",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n",
        f"a \\u00{SECRET}\n",
        f"{PLAIN}sasl.jaas.config={SECRET} required password={SECRET}\n",
        f"{PLAIN}sasl.username={SECRET}\n",
    ],
)
def test_an_error_shows_nothing_of_a_file_that_the_broker_can_read(tmp_path: Path, content: str) -> None:
    """Who may create mirrors can name any file of the broker's machine."""
    path = tmp_path / "file"
    path.write_text(content)
    try:
        shown = repr(client_config(definition(path)))
    except ClientConfigError as error:
        shown = str(error)
    assert SECRET not in shown


def test_a_file_that_everyone_can_read_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "source.properties"
    path.write_text(LOGIN)
    path.chmod(0o640)
    with caplog.at_level(logging.WARNING):
        client_config(definition(path))
        assert not caplog.messages
        path.chmod(0o644)
        client_config(definition(path))
    (message,) = caplog.messages
    assert message == f"mirror m: every user of this machine can read its command config; run chmod o-r {path}"


async def test_a_refused_login_at_the_source_shows_no_secret_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "source.properties"
    path.touch(mode=0o600)
    path.write_text(LOGIN)
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_mirror="other";'
    with (
        start_daemon(
            tmp_path / "source",
            "listeners=SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms=PLAIN",
            f"listener.name.sasl_plaintext.plain.sasl.jaas.config={users}",
            "connection.failed.authentication.delay.ms=0",
        ) as source,
        start_daemon(tmp_path / "copy") as copy,
    ):
        async with admin_of(copy) as admin:
            await admin.mirrors.create(MIRROR, bootstrap=[source.bootstrap], topics=["t"], command_config=str(path))
            found = await until(copy, lambda each: each.error is not None)
            assert "PLAIN" in str(found.error)
            configs = await admin.describe_configs(broker="")
            assert str(path) in repr([each.value for each in configs])
        with urllib.request.urlopen(f"http://127.0.0.1:{copy.metrics_port}/metrics", timeout=30) as answer:
            metrics = answer.read().decode()
        shown = [repr(found), repr(configs), copy.log, source.log, metrics]
        assert copy.stop() == 0
        shown += [file.read_bytes().decode("latin-1") for file in copy.directory.rglob("*") if file.is_file()]
        assert not [text for text in shown if SECRET in text]


async def test_a_source_with_tls_and_scram_is_copied_and_another_authority_is_refused(tmp_path: Path) -> None:
    with (
        secure_broker(directory=tmp_path / "source") as source,
        secure_broker(directory=tmp_path / "other") as other,
        start_daemon(tmp_path / "copy") as copy,
    ):
        source.create_topic("t")
        config = ProducerConfig(bootstrap=source.bootstrap, security=source.security)
        async with Producer(config) as producer:
            for _ in range(20):
                await producer.send_and_wait("t", b"value")
        properties = source.add_user("mirror", SECRET)
        authority = other.client_properties["ssl.truststore.certificates"]
        path = tmp_path / "source.properties"
        path.touch(mode=0o600)
        _write_properties(path, {**properties, "ssl.truststore.certificates": authority})
        async with admin_of(copy) as admin:
            await admin.mirrors.create(MIRROR, bootstrap=[source.bootstrap], topics=["t"], command_config=str(path))
            found = await until(copy, lambda each: each.error is not None)
            assert "certificate" in str(found.error)
            _write_properties(path, properties)
            await admin.mirrors.pause(MIRROR)
            await admin.mirrors.resume(MIRROR)
            await until(copy, has_copied(20))
            assert segments(copy.data_directory, "t") == segments(source.data_directory, "t")


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    escaped = {name: value.replace("\\", "\\\\").replace("\n", "\\n") for name, value in properties.items()}
    path.write_text("".join(f"{name}={value}\n" for name, value in escaped.items()))
