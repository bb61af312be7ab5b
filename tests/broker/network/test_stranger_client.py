"""The clients of docs/native.md, as written there: sockets, msgpack, and no code of Barnabas."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgpack
import pytest
import trustme

from barnabas import Producer, ProducerConfig
from tests.support.answers.brokers import ports_of
from tests.support.daemon import Daemon, start_daemon
from tests.support.tls import authority_pem, pem_bundle, write_private

PAGE = (Path(__file__).parents[3] / "docs" / "native.md").read_text(encoding="utf-8")
TIME_MS = 1_700_000_000_000


def program(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The command of each client whose language is installed."""
    directory = tmp_path_factory.mktemp("clients")
    commands = {}
    for language, name, interpreter in (("python", "client.py", sys.executable), ("javascript", "client.mjs", "node")):
        (directory / name).write_text(program(language), encoding="utf-8")
        if shutil.which(interpreter):
            commands[language] = [interpreter, str(directory / name)]
    return commands


@pytest.fixture(scope="module")
def authority_file(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    return write_private(tmp_path_factory.mktemp("authority") / "ca.pem", authority_pem(authority))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, server_certificate: trustme.LeafCert) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("stranger")
    with start_daemon(
        directory,
        "listeners=PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={write_private(directory / 'broker.pem', pem_bundle(server_certificate))}",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.secure.plain.sasl.jaas.config="
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="se:cret";',
        "num.partitions=2",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def page() -> ModuleType:
    module = ModuleType("page")
    exec(compile(program("python"), "docs/native.md", "exec"), module.__dict__)
    return module


@pytest.fixture
def client(daemon: Daemon, page: ModuleType) -> Iterator[Any]:
    connected = page.Client(f"{daemon.host}:{daemon.port}")
    yield connected
    connected.socket.close()


def run(
    clients: dict[str, list[str]], language: str, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    if language not in clients:
        pytest.skip("node is not on the PATH")
    return subprocess.run(
        [*clients[language], *arguments],
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def secure(login: str, authority_file: Path) -> dict[str, str]:
    trust = str(authority_file)
    return {"LOGIN": login, "AUTHORITY": trust, "TLS": "1", "NODE_EXTRA_CA_CERTS": trust}


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SECURE"])
@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_program_of_the_page_writes_a_topic_and_prints_it(
    daemon: Daemon, clients: dict[str, list[str]], authority_file: Path, language: str, listener: str
) -> None:
    environ = secure("alice:se:cret", authority_file) if listener == "SECURE" else {}
    address, topic = f"127.0.0.1:{ports_of(daemon)[listener]}", f"{language}-{listener}"

    wrote = run(clients, language, address, topic, "alpha", "", **environ)
    wrote_more = run(clients, language, address, topic, "gämma", **environ)

    assert (wrote.returncode, wrote.stdout) == (0, "0\t0\talpha\n0\t1\t\n"), wrote.stderr
    assert (wrote_more.returncode, wrote_more.stdout) == (0, "0\t0\talpha\n0\t1\t\n0\t2\tgämma\n"), wrote_more.stderr


def test_the_clients_of_the_page_have_at_most_100_lines() -> None:
    assert [len(program(language).splitlines()) <= 100 for language in ("python", "javascript")] == [True, True]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_refused_login_says_why(
    daemon: Daemon, clients: dict[str, list[str]], language: str, authority_file: Path
) -> None:
    address = f"127.0.0.1:{ports_of(daemon)['SECURE']}"

    refused = run(clients, language, address, "t", **secure("alice:guess", authority_file))

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "error 58: Authentication failed: Invalid username or password" in refused.stderr


def test_hello_lists_the_apis_of_the_page(client: Any) -> None:
    described = {
        int(api) for title in re.findall(r"^### (.*)", PAGE, re.MULTILINE) for api in re.findall(r"\d+", title)
    }
    hello = client.hello

    assert described <= {api for api, _, _ in hello["apis"]}
    assert all(versions == [0, 0] for _, *versions in hello["apis"])
    assert (hello["server"], hello["max_frame_bytes"]) == ("barnabas", 100 * 1024 * 1024)


def test_metadata_creates_a_topic_only_where_asked_to_and_names_the_address_of_the_listener(client: Any) -> None:
    host, port = client.socket.getpeername()

    missing, _ = client.request(3, {"topics": ["made", "no/name"]})
    assert [topic[:2] for topic in missing["topics"]] == [[3, "made"], [17, "no/name"]]
    assert client.partitions("made") == [0, 1]
    everything, _ = client.request(3, {})

    assert [broker[1:] for broker in everything["brokers"]] == [[host, port]]
    (made,) = [topic for topic in everything["topics"] if topic[1] == "made"]
    assert (made[0], len(made[2])) == (0, 22)
    assert sorted(row[:3] for row in made[3]) == [[0, 0, 1], [0, 1, 1]]


def test_batches_of_several_partitions_share_a_request_and_an_answer(client: Any, page: ModuleType) -> None:
    client.partitions("several")
    first = page.make_batch([(b"a", b"alpha"), (None, b"nobody")], TIME_MS)
    second = page.make_batch([(b"b", None)], TIME_MS + 500)

    topics = [["several", [[0, len(first)], [1, len(second)]]]]
    produced, _ = client.request(0, {"acks": 1, "topics": topics}, first + second)
    assert produced["topics"] == [["several", [[0, 0, None, 0, -1, 0], [1, 0, None, 0, -1, 0]]]]

    fetched, records = client.request(1, {"topics": [["several", [[0, 1, 1 << 20], [1, 0, 1 << 20]]]]})
    zero, one = fetched["topics"][0][1]
    assert (zero[:6], one[:6]) == ([0, 0, 2, 2, 0, []], [1, 0, 1, 1, 0, []])
    assert zero[6] + one[6] == len(records)
    assert list(page.read_batches(records[: zero[6]], 1)) == [(2, [(1, TIME_MS, None, b"nobody")])]
    assert list(page.read_batches(records[zero[6] :], 0)) == [(1, [(0, TIME_MS + 500, b"b", None)])]


def test_offsets_are_found_by_time(client: Any, page: ModuleType) -> None:
    client.partitions("times")
    for later in (0, 500):
        client.produce("times", 0, page.make_batch([(None, b"v")] * 2, TIME_MS + later))

    timestamps = (-1, -2, -3, TIME_MS - 1, TIME_MS + 1, TIME_MS + 501)
    assert [client.offset("times", 0, each) for each in timestamps] == [4, 0, 2, 0, 2, -1]


def test_the_client_reads_over_headers_and_the_marker_of_a_transaction(daemon: Daemon, client: Any) -> None:
    async def write() -> None:
        async with Producer(ProducerConfig(bootstrap=daemon.bootstrap, transactional_id="page")) as producer:
            async with producer.transaction():
                await producer.send("written", b"in it", key=b"k", partition=0, headers=[("h", b"1")])

    client.partitions("written")
    asyncio.run(write())

    ((following, records), (end, marker)) = client.fetch("written", 0, 0)
    assert [(offset, key, value) for offset, _, key, value in records] == [(0, b"k", b"in it")]
    assert (following, end, marker) == (1, 2, [])


def test_a_refused_request_is_answered_and_the_connection_goes_on(client: Any, page: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="error 35: api 99 version 0 is not served here"):
        client.request(99, {})
    with pytest.raises(RuntimeError, match="error 42: offset is of type str, not an integer"):
        client.request(1, {"topics": [["t", [[0, "five", 1]]]]})
    with pytest.raises(RuntimeError, match="error 42: the sizes add up to 1, but 2 bytes of records follow"):
        client.request(0, {"acks": 1, "topics": [["t", [[0, 1]]]]}, b"xy")
    with pytest.raises(RuntimeError, match="error 3: "):
        client.produce("unmade", 0, page.make_batch([(None, b"v")], TIME_MS))
    client.partitions("empty")
    with pytest.raises(RuntimeError, match="error 1: "):
        client.fetch("empty", 0, 7)
    assert client.request(18, {})[0] == client.hello


def test_the_page_example_is_what_the_layout_says() -> None:
    text = PAGE.split("byte by byte")[1]
    example = bytes.fromhex("".join(re.findall(r"^    ((?:[0-9a-f]{2} )+)", text, re.MULTILINE)))
    header = msgpack.packb([3, 0, 7, "demo", {"topics": None}])
    assert example == struct.pack(">iI", 4 + len(header), 0xB7 << 24 | len(header)) + header
