"""The commands as processes against a real broker: the behaviour that scripts rely on."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon
from tests.support.forked_commands import RunningCommand, run_forked, running_forked
from tests.support.forking import TIMEOUT_S
from tests.support.free_ports import free_port
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.storage.bench import batch


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("daemon"), "auto.create.topics.enable=false") as running:
        yield running


class Commands:
    """Runs `barnabas ...` on one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.environ = {**os.environ, "BARNABAS_BOOTSTRAP": bootstrap}

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return run_forked(*arguments, environ=self.environ, stdin=stdin)

    def ok(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Standard output of a command that must succeed and write nothing to standard error."""
        result = self.run(*arguments, stdin=stdin)
        assert (result.returncode, result.stderr) == (0, b""), result
        return result.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def records(self, *arguments: str) -> list[dict[str, Any]]:
        """The records that `consume` reads up to the end of a topic."""
        lines = self.ok("consume", *arguments, "--exit-at-end", "--json").splitlines()
        return [json.loads(line) for line in lines]

    def start(self, *arguments: str) -> AbstractContextManager[RunningCommand]:
        """A running command, killed at the end if it has not ended."""
        return running_forked(*arguments, environ=self.environ)


@pytest.fixture
def commands(daemon: Daemon) -> Commands:
    return Commands(daemon.bootstrap)


@pytest.fixture
def topic(commands: Commands) -> str:
    """A new topic with two partitions."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    arguments = ["topic", "create", name, "--partitions", "2", "--bootstrap", commands.environ["BARNABAS_BOOTSTRAP"]]
    result = CliRunner().invoke(main, arguments)  # in this process: half of all tests begin with it
    assert result.exit_code == 0, result.output
    return name


def _refused(result: subprocess.CompletedProcess[bytes], code: int, sentence: str) -> None:
    assert result.returncode == code, result
    assert sentence in result.stderr.decode()
    assert result.stderr.startswith(b"barnabas: ")
    assert result.stderr.count(b"\n") == 1
    assert result.stderr.endswith(b"\n")


# topics


def test_a_topic_is_created_listed_described_altered_and_deleted(commands: Commands) -> None:
    created = commands.json("topic", "create", "life", "--partitions", "3", "--config", "retention.ms=-1")
    assert (created["topic"], created["partitions"], created["created"]) == ("life", 3, True)
    assert len(created["topic_id"]) == 22

    listed = {entry["topic"]: entry for entry in commands.json("topic", "list")}
    assert listed["life"] == {"topic": "life", "topic_id": created["topic_id"], "partitions": 3}

    (described,) = commands.json("topic", "describe", "life")
    assert [entry["partition"] for entry in described["partitions"]] == [0, 1, 2]
    assert {(entry["earliest"], entry["latest"]) for entry in described["partitions"]} == {(0, 0)}
    assert {entry["name"]: entry["value"] for entry in described["configs"]} == {"retention.ms": "-1"}

    commands.ok("topic", "alter", "life", "--partitions", "4", "--config", "segment.ms=1000")
    commands.ok("topic", "alter", "life", "--delete-config", "retention.ms")
    (altered,) = commands.json("topic", "describe", "life")
    assert len(altered["partitions"]) == 4
    assert {entry["name"]: entry["value"] for entry in altered["configs"]} == {"segment.ms": "1000"}

    commands.ok("topic", "delete", "life")
    assert "life" not in {entry["topic"] for entry in commands.json("topic", "list")}


def test_describe_shows_the_cleaning_state_of_compacted_topics_only(commands: Commands) -> None:
    configs = ("cleanup.policy=compact", "segment.bytes=65536", "min.cleanable.dirty.ratio=1.0")
    commands.run("topic", "create", "table", *(part for config in configs for part in ("--config", config)))
    commands.ok("produce", "table", "--key-separator", ":", stdin=(b"k:" + bytes(1000) + b"\n") * 200)
    fields = ("clean_offset", "dirty_ratio", "cleaning")
    (described,) = commands.json("topic", "describe", "table")
    assert [described["partitions"][0][field] for field in fields] == [None, 1.0, "idle"]
    table = commands.ok("topic", "describe", "table").decode().splitlines()
    assert " ".join(table[1].split()) == "partition leader leader epoch earliest latest clean to dirty cleaning"
    assert table[2].split() == ["0", "1", "0", "0", "200", "-", "1.0", "idle"]

    commands.ok("topic", "alter", "table", "--config", "cleanup.policy=delete")
    (described,) = commands.json("topic", "describe", "table")
    assert [described["partitions"][0][field] for field in fields] == [None, None, None]
    assert b"cleaning" not in commands.ok("topic", "describe", "table")


def test_a_topic_that_exists_is_refused_unless_that_is_allowed(commands: Commands, topic: str) -> None:
    _refused(commands.run("topic", "create", topic), 1, "TOPIC_ALREADY_EXISTS")

    again = commands.json("topic", "create", topic, "--partitions", "5", "--if-not-exists")
    assert (again["created"], again["partitions"]) == (False, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "describe", "nowhere"),
        ("topic", "delete", "nowhere"),
        ("topic", "alter", "nowhere", "--config", "retention.ms=1"),
        ("topic", "alter", "nowhere", "--partitions", "2"),
        ("consume", "nowhere", "--from-beginning"),
        ("offsets", "nowhere"),
        ("produce", "nowhere"),
        ("config", "describe", "--topic", "nowhere"),
    ],
)
def test_a_topic_that_does_not_exist_is_one_sentence_and_exit_code_1(
    commands: Commands, arguments: tuple[str, ...]
) -> None:
    _refused(commands.run(*arguments, stdin=b"x\n"), 1, "UNKNOWN_TOPIC_OR_PARTITION")


def test_deleting_an_unknown_topic_can_be_allowed(commands: Commands, topic: str) -> None:
    output = commands.ok("topic", "delete", topic, "nowhere", "--if-exists")

    assert output.decode() == f"deleted topic {topic}\nthere is no topic nowhere\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("topic", "create", "a/b"), "INVALID_TOPIC_EXCEPTION"),
        (("topic", "create", "bad", "--config", "retention.ms=soon"), "INVALID_CONFIG"),
        (("topic", "create", "bad", "--config", "no.such.property=1"), "INVALID_CONFIG"),
        (("topic", "create", "bad", "--replication-factor", "3"), "INVALID_REPLICATION_FACTOR"),
    ],
)
def test_the_brokers_errors_are_one_sentence_with_kafkas_error_name(
    commands: Commands, arguments: tuple[str, ...], code: str
) -> None:
    _refused(commands.run(*arguments), 1, code)


def test_fewer_partitions_are_refused(commands: Commands, topic: str) -> None:
    _refused(commands.run("topic", "alter", topic, "--partitions", "1"), 1, "INVALID_PARTITIONS")


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "create"),
        ("topic", "create", "t", "--partitions", "0"),
        ("topic", "create", "t", "--config", "novalue"),
        ("topic", "alter", "t"),
        ("topic", "alter", "t", "--config", "a=1", "--delete-config", "a"),
        ("consume", "t", "--from-beginning", "--offset", "3"),
        ("consume", "t", "--group", "g", "--offset", "3"),
        ("consume", "t", "--group", "g", "--partition", "0"),
        ("consume", "t", "--group", ""),
        ("consume", "t", "--base64"),
        ("consume", "t", "--json", "--print-key"),
        ("produce", "t", "--json", "--key-separator", "|"),
        ("produce", "t", "--keep-partition"),
        ("produce", "t", "--acks", "2"),
        ("produce", "t", "--compression", "brotli"),
        ("config", "describe"),
        ("config", "alter", "--topic", "t"),
        ("offsets", "t", "--timestamp", "yesterday"),
        ("topic", "list", "--bootstrap", "nowhere"),
        ("produce", "t", "--transactional-id", "x", "--acks", "1"),
        ("produce", "t", "--transaction-timeout", "5m"),
    ],
)
def test_wrong_usage_exits_with_2_before_any_broker_is_asked(arguments: tuple[str, ...]) -> None:
    result = Commands("127.0.0.1:1").run(*arguments)

    assert result.returncode == 2, result
    assert b"Traceback" not in result.stderr
    assert b"Error: " in result.stderr


# produce and consume


def test_lines_are_read_back_with_their_keys_in_order(commands: Commands, topic: str) -> None:
    keys = ["a", "b", "c", "d"]
    lines = [f"{keys[number % 4]}|value {number}" for number in range(1000)]

    commands.ok("produce", topic, "--key-separator", "|", stdin="\n".join(lines).encode())

    records = commands.records(topic, "--from-beginning")
    assert len(records) == 1000
    assert {record["partition"] for record in records} == {0, 1}
    for key in keys:
        values = [record["value"] for record in records if record["key"] == key]
        assert values == [f"value {number}" for number in range(1000) if keys[number % 4] == key]
    for partition in (0, 1):
        offsets = [record["offset"] for record in records if record["partition"] == partition]
        assert offsets == list(range(len(offsets)))
    assert set(records[0]) == {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}
    assert abs(records[0]["timestamp"] - time.time() * 1000) < 60_000


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_compression_are_read_back(commands: Commands, topic: str, compression: str) -> None:
    lines = [b"line %d" % number for number in range(500)]

    commands.ok("produce", topic, "--partition", "1", "--compression", compression, stdin=b"\n".join(lines))

    assert commands.ok("consume", topic, "--from-beginning", "--exit-at-end").splitlines() == lines


@pytest.mark.parametrize("acks", ["0", "1", "all", "-1"])
def test_records_arrive_with_every_acks(commands: Commands, topic: str, acks: str) -> None:
    commands.ok("produce", topic, "--acks", acks, stdin=b"x\n")

    assert commands.ok("consume", topic, "--from-beginning", "--max-messages", "1") == b"x\n"


def test_lines_are_sent_as_one_transaction(commands: Commands, topic: str) -> None:
    transaction = ("--transactional-id", f"import-{topic}")
    failed = commands.run("produce", topic, "--json", *transaction, stdin=b'{"value": "a"}\nnot json\n')
    _refused(failed, 1, "line 2")
    assert b"the transaction was aborted" in failed.stderr
    commands.ok("produce", topic, *transaction, stdin=b"b\nc\n")
    committed = ("consume", topic, "--from-beginning", "--exit-at-end", "--isolation-level")
    assert sorted(commands.ok(*committed, "read_committed").splitlines()) == [b"b", b"c"]
    assert b"a" in commands.ok(*committed, "read_uncommitted").splitlines()


@pytest.mark.parametrize("rest", [b"c\n", b""], ids=["a line is refused", "the commit is refused"])
def test_a_run_whose_transaction_another_run_has_aborted_says_so(commands: Commands, topic: str, rest: bytes) -> None:
    produce = ("produce", topic, "--transactional-id", f"taken-{topic}")
    with commands.start(*produce) as first:
        first.stdin.write(b"a\n")
        deadline = time.monotonic() + TIMEOUT_S
        while not commands.ok("consume", topic, "--from-beginning", "--exit-at-end"):
            assert time.monotonic() < deadline
        commands.ok(*produce, stdin=b"b\n")
        code, stderr = first.finish(rest)
    assert code == 1
    assert b"the broker has aborted the transaction: it was open for longer than --transaction-timeout (1m)" in stderr
    assert f"or another run with transactional id 'taken-{topic}'".encode() in stderr
    assert b"Send the input again" in stderr


def test_a_transaction_that_cannot_be_aborted_because_the_broker_is_gone_is_not_called_aborted(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        daemon.create_topic("orders")
        commands = Commands(daemon.bootstrap)
        produce = ("produce", "orders", "--transactional-id", "import", "--timeout", "1")
        with commands.start(*produce) as running:
            running.stdin.write(b"a\n")
            deadline = time.monotonic() + TIMEOUT_S
            while not commands.ok("consume", "orders", "--from-beginning", "--exit-at-end"):
                assert time.monotonic() < deadline
            daemon.kill()
            code, stderr = running.finish(b"b\n")
    assert code == ExitCode.NO_CONNECTION
    assert b"line 2: " in stderr
    assert b"the broker cannot be reached to abort the transaction" in stderr
    assert b"--transaction-timeout (1m)" in stderr
    assert b"was aborted" not in stderr


def test_tombstones_null_keys_and_headers_can_be_sent(commands: Commands, topic: str) -> None:
    commands.ok(
        *("produce", topic, "--partition", "0", "--key-separator", "|", "--null-marker", "NULL"),
        *("--parse-headers", "--header", "common=1", "--timestamp", "2013-07-04T12:00:00Z"),
        stdin=b"a:1,b:NULL\tk|NULL\nNULL\tNULL|v\n",
    )

    tombstone, keyless = commands.records(topic, "--from-beginning")
    assert (tombstone["key"], tombstone["value"]) == ("k", None)
    assert tombstone["headers"] == [["a", "1"], ["b", None], ["common", "1"]]
    assert tombstone["timestamp"] == 1372939200000
    assert (keyless["key"], keyless["value"], keyless["headers"]) == (None, "v", [["common", "1"]])


def test_bytes_of_any_kind_survive_consume_json_into_produce_json(commands: Commands, topic: str) -> None:
    values = [bytes(range(256)).replace(b"\n", b"").replace(b"|", b""), b"", "ü\u2028".encode(), b"\xff"]
    commands.ok(
        *("produce", topic, "--key-separator", "|", "--partition", "0"),
        stdin=b"\n".join(value + b"|" + value for value in values),
    )
    source = commands.run("consume", topic, "--from-beginning", "--exit-at-end", "--json")
    assert source.returncode == 0
    assert source.stderr.count(b"\n") == 1
    assert b"2 records with bytes that are not UTF-8" in source.stderr

    commands.ok("produce", topic, "--json", "--partition", "1", stdin=source.stdout)

    copies = commands.records(topic, "--from-beginning", "--partition", "1", "--base64")
    assert [base64.b64decode(copy["value"]) for copy in copies] == values
    assert [base64.b64decode(copy["key"]) for copy in copies] == values
    originals = [json.loads(line) for line in source.stdout.splitlines()]
    assert [copy["timestamp"] for copy in copies] == [original["timestamp"] for original in originals]


def test_consume_starts_at_the_given_position_and_stops_after_max_messages(commands: Commands, topic: str) -> None:
    lines = [{"value": str(number), "timestamp": 1_000_000 + number * 1000} for number in range(10)]
    commands.ok(*("produce", topic, "--json", "--partition", "1"), stdin="\n".join(map(json.dumps, lines)).encode())

    def values(*arguments: str) -> list[str]:
        return [record["value"] for record in commands.records(topic, "--partition", "1", *arguments)]

    assert values("--offset", "7") == ["7", "8", "9"]
    assert values("--timestamp", "1006500") == ["7", "8", "9"]
    assert values("--timestamp", "1970-01-01T00:16:47Z") == ["7", "8", "9"]
    assert values("--timestamp", "9999999") == []
    assert values("--from-beginning", "--max-messages", "3") == ["0", "1", "2"]
    assert values() == []
    assert commands.records(topic, "--partition", "0", "--from-beginning") == []


def test_an_offset_out_of_range_is_refused(commands: Commands, topic: str) -> None:
    result = commands.run("consume", topic, "--offset", "99", "--timeout-ms", "20000")

    _refused(result, 1, "OFFSET_OUT_OF_RANGE")


def test_a_partition_that_does_not_exist_is_refused(commands: Commands, topic: str) -> None:
    _refused(commands.run("consume", topic, "--partition", "2"), 1, "its partitions are 0 to 1")
    _refused(commands.run("offsets", topic, "--partition", "2"), 1, "its partitions are 0 to 1")
    _refused(commands.run("produce", topic, "--partition", "2", stdin=b"x"), 1, "line 1: ")


def test_consume_without_a_start_reads_new_records(commands: Commands, topic: str) -> None:
    commands.ok("produce", topic, stdin=b"before\n")
    with commands.start("consume", topic, "--max-messages", "1") as consumer:
        # Whether it listens already cannot be seen from outside, so go on saying it until it has heard.
        deadline = time.monotonic() + TIMEOUT_S
        while consumer.is_running:
            assert time.monotonic() < deadline
            commands.ok("produce", topic, stdin=b"after\n")
        assert consumer.stdout.read() == b"after\n"
        assert consumer.wait() == 0


def test_consume_exits_with_4_when_no_record_comes(commands: Commands, topic: str) -> None:
    _refused(commands.run("consume", topic, "--timeout-ms", "200"), 4, "no record came for 0.2 s")


def test_the_parts_of_a_record_are_printed_as_kafkas_console_consumer_does(commands: Commands, topic: str) -> None:
    commands.ok("produce", topic, "--json", "--partition", "1", stdin=b'{"key": "k", "timestamp": 5}')

    output = commands.ok(
        *("consume", topic, "--from-beginning", "--exit-at-end"),
        *("--print-timestamp", "--print-partition", "--print-offset", "--print-headers", "--print-key"),
        *("--separator", r"\x7c"),
    )

    assert output == b"CreateTime:5|Partition:1|Offset:0|NO_HEADERS|k|null\n"


def test_an_invalid_line_is_named_and_the_lines_before_it_are_sent(commands: Commands, topic: str) -> None:
    result = commands.run("produce", topic, "--key-separator", "|", stdin=b"a|1\nb|2\nc3\nd|4\n")

    _refused(result, 1, "line 3: no key separator '|' in 'c3'; 2 records were sent")
    assert [record["key"] for record in commands.records(topic, "--from-beginning")] == ["a", "b"]


def test_a_keyed_line_that_the_client_refuses_is_named_and_the_lines_before_it_are_sent(
    commands: Commands, topic: str
) -> None:
    lines = [b"%d|%d" % (number, number) for number in range(100)]

    result = commands.run(
        "produce", topic, "--key-separator", "|", stdin=b"\n".join([*lines, b"k|" + bytes(3_000_000)])
    )

    _refused(result, 1, "max_request_bytes=1048576 (MESSAGE_TOO_LARGE); 100 records were sent")
    assert result.stderr.startswith(b"barnabas: line 101: ")
    assert len(commands.records(topic, "--from-beginning")) == 100


def test_a_keyed_line_that_the_broker_refuses_is_named(commands: Commands, topic: str) -> None:
    commands.ok("topic", "alter", topic, "--config", "max.message.bytes=2000")

    result = commands.run("produce", topic, "--key-separator", "|", stdin=b"a|1\na|2\nb|" + bytes(5000))

    assert result.returncode == 1, result
    assert b"MESSAGE_TOO_LARGE" in result.stderr


def test_a_key_may_be_null_and_a_value_too(commands: Commands, topic: str) -> None:
    command = ("produce", topic, "--key-separator", "|", "--null-marker", "NULL", "--header", "h=1")
    commands.ok(*command, stdin=b"k|1\nNULL|2\nk|NULL\n|")

    records = commands.records(topic, "--from-beginning")
    assert sorted((str(each["key"]), str(each["value"])) for each in records) == [
        *(("", ""), ("None", "2"), ("k", "1"), ("k", "None"))
    ]
    assert all(each["headers"] == [["h", "1"]] for each in records)
    assert [each["value"] for each in records if each["key"] == "k"] == ["1", None]


def test_a_refused_line_is_named(commands: Commands, topic: str) -> None:
    commands.ok("topic", "alter", topic, "--config", "max.message.bytes=2000")

    result = commands.run("produce", topic, "--partition", "0", stdin=b"small\n" + b"x" * 5000 + b"\n")

    assert result.returncode == 1, result
    assert result.stderr.startswith(b"barnabas: line ")
    assert b"MESSAGE_TOO_LARGE" in result.stderr


@pytest.mark.parametrize("line", [b"x" * 5000, b"\x00" * 3_000_000], ids=["by the broker", "by the client"])
def test_a_refusal_ends_produce_while_its_input_stays_open(commands: Commands, topic: str, line: bytes) -> None:
    commands.ok("topic", "alter", topic, "--config", "max.message.bytes=2000")
    with commands.start("produce", topic) as producer:
        producer.stdin.write(line + b"\n")
        assert producer.wait() == 1
        assert producer.stderr.read().startswith(b"barnabas: line 1: ")


def test_a_line_is_sent_while_the_input_stays_open(commands: Commands, topic: str) -> None:
    with commands.start("produce", topic) as producer:
        producer.stdin.write(b"first\n")
        assert commands.ok("consume", topic, "--from-beginning", "--max-messages", "1") == b"first\n"
        producer.stdin.close()
        assert producer.wait() == 0


# ends


def test_a_closed_pipe_ends_consume_without_a_message(commands: Commands, topic: str) -> None:
    commands.ok("produce", topic, stdin=b"only one\n")

    with commands.start("consume", topic, "--from-beginning") as consumer:
        assert consumer.stdout.readline() == b"only one\n"
        consumer.stdout.close()  # nothing more is produced: only the pipe itself can tell
        assert consumer.wait() == 141
        assert consumer.stderr.read() == b""


def test_a_pipe_closed_in_the_middle_of_the_output_ends_consume_without_a_message(
    commands: Commands, topic: str
) -> None:
    commands.ok("produce", topic, stdin=(b"0123456789" * 100 + b"\n") * 1000)

    with commands.start("consume", topic, "--from-beginning") as consumer:
        assert consumer.stdout.read(5) == b"01234"  # the pipe is full and the command waits in a write
        consumer.stdout.close()
        assert consumer.wait() == 141
        assert consumer.stderr.read() == b""


def test_ctrl_c_ends_consume_with_130_and_without_a_message(commands: Commands, topic: str) -> None:
    commands.ok("produce", topic, stdin=b"x\n")

    with commands.start("consume", topic, "--from-beginning") as consumer:
        assert consumer.stdout.readline() == b"x\n"
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait() == 130
        assert consumer.stderr.read().strip() == b""


def test_ctrl_c_ends_produce_with_130_after_delivering_read_lines(commands: Commands, topic: str) -> None:
    with commands.start("produce", topic) as producer:
        producer.stdin.write(b"typed\n")
        assert commands.ok("consume", topic, "--from-beginning", "--max-messages", "1") == b"typed\n"
        producer.send_signal(signal.SIGINT)
        assert producer.wait() == 130
        assert producer.stderr.read().strip() == b""


@pytest.mark.parametrize("arguments", [("topic", "list"), ("produce", "t"), ("consume", "t"), ("offsets", "t")])
def test_no_broker_is_one_sentence_and_exit_code_3(arguments: tuple[str, ...]) -> None:
    bootstrap = f"127.0.0.1:{free_port()}"

    _refused(Commands(bootstrap).run(*arguments, stdin=b"x\n"), 3, bootstrap)


def test_a_broker_that_does_not_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        result = Commands(bootstrap).run("topic", "list", "--timeout", "0.5")

    assert result.returncode in (3, 4), result
    assert result.stderr.count(b"\n") == 1


# offsets and configs


def test_offsets_shows_earliest_latest_maximum_timestamp_and_a_time(commands: Commands, topic: str) -> None:
    lines = [{"value": "v", "timestamp": timestamp} for timestamp in (1000, 5000, 3000)]
    commands.ok(*("produce", topic, "--json", "--partition", "1"), stdin="\n".join(map(json.dumps, lines)).encode())

    assert commands.json("offsets", topic, "--timestamp", "2000") == [
        {
            "topic": topic,
            "partition": 0,
            "earliest": 0,
            "latest": 0,
            "max_timestamp": None,
            "at_timestamp": None,
        },
        {
            "topic": topic,
            "partition": 1,
            "earliest": 0,
            "latest": 3,
            "max_timestamp": {"offset": 1, "timestamp": 5000},
            "at_timestamp": {"offset": 1, "timestamp": 5000},
        },
    ]
    (row,) = commands.ok("offsets", topic, "--partition", "1").decode().splitlines()[1:]
    assert row.split() == ["1", "0", "3", "3", "1", "1970-01-01T00:00:05.000Z"]


def test_offsets_shows_no_maximum_timestamp_of_records_without_one(
    commands: Commands, topic: str, daemon: Daemon
) -> None:
    with KafkaWire(daemon.host, daemon.port) as kafka:
        assert kafka.produce(9, topic, bytes(batch((-1, None, b"timeless")))).error_code == 0

    (found,) = commands.json("offsets", topic, "--partition", "0")

    assert (found["latest"], found["max_timestamp"]) == (1, None)


@pytest.mark.parametrize("resource", [("--all-brokers",), ("--broker", "1")])
def test_a_brokers_property_is_set_and_unset_while_it_runs(commands: Commands, resource: tuple[str, ...]) -> None:
    def retention() -> tuple[str | None, str]:
        (entry,) = commands.json("config", "describe", "--broker", "1", "log.retention.ms")
        return entry["value"], entry["source"]

    before = retention()

    commands.ok("config", "alter", *resource, "--config", "log.retention.ms=123456")
    assert retention() == (
        "123456",
        "DYNAMIC_DEFAULT_BROKER_CONFIG" if resource == ("--all-brokers",) else "DYNAMIC_BROKER_CONFIG",
    )
    assert [entry["name"] for entry in commands.json("config", "describe", *resource)].count("log.retention.ms") == 1

    commands.ok("config", "alter", *resource, "--delete-config", "log.retention.ms")
    assert retention() == before
    if resource == ("--all-brokers",):
        assert commands.json("config", "describe", *resource) == []


def test_a_property_that_cannot_change_while_running_is_refused(commands: Commands) -> None:
    result = commands.run("config", "alter", "--all-brokers", "--config", "log.dirs=/elsewhere")

    assert result.returncode == 1, result
    assert b"log.dirs" in result.stderr


def test_a_brokers_properties_are_shown_with_their_update_mode(commands: Commands) -> None:
    table = commands.ok("config", "describe", "--broker", "1", "log.dirs", "log.retention.ms").decode().splitlines()

    assert [row.split("  ")[-1].strip() for row in table] == ["may change", "at start", "while running"]


def test_deleting_a_topic_while_deletion_is_disabled_is_an_error(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "delete.topic.enable=false") as daemon:
        commands = Commands(daemon.bootstrap)
        commands.ok("topic", "create", "kept")
        result = commands.run("topic", "delete", "kept", "--yes")

    assert result.returncode == 1, result
    assert b"delete.topic.enable is false" in result.stderr
    assert b"(TOPIC_DELETION_DISABLED)" in result.stderr


def test_a_topics_properties_are_shown_with_their_source(commands: Commands, topic: str) -> None:
    commands.ok("config", "alter", "--topic", topic, "--config", "retention.ms=77")

    entries = {entry["name"]: entry for entry in commands.json("config", "describe", "--topic", topic, "--all")}

    assert (entries["retention.ms"]["value"], entries["retention.ms"]["source"]) == ("77", "DYNAMIC_TOPIC_CONFIG")
    assert (entries["segment.bytes"]["value"], entries["segment.bytes"]["is_default"]) == ("1073741824", True)
    shown = commands.json("config", "describe", "--topic", topic)
    assert [entry["name"] for entry in shown] == ["retention.ms"]


def test_config_list_has_every_property_with_type_default_and_meaning() -> None:
    entries = {entry["name"]: entry for entry in Commands("unused:1").json("config", "list")}

    assert entries["log.segment.bytes"]["type"] == "int"
    assert entries["log.segment.bytes"]["default"] == 1073741824
    assert entries["cleanup.policy"]["scope"] == "topic"
    assert all(entry["doc"] for entry in entries.values())
    assert set(next(iter(entries.values()))) >= {"scope", "name", "type", "default", "doc", "update_mode"}


# serve


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("log.segment.bytes=many", "log.segment.bytes"),
        ("log.segment.byte=1", "log.segment.bytes"),
        ("nonsense", "--set"),
    ],
)
def test_serve_refuses_a_bad_configuration_with_one_sentence_and_2(tmp_path: Path, setting: str, words: str) -> None:
    result = Commands("unused:1").run("serve", "--set", f"log.dirs={tmp_path}", "--set", setting)

    _refused(result, 2, words)


def test_serve_refuses_a_missing_configuration_file(tmp_path: Path) -> None:
    _refused(Commands("unused:1").run("serve", "--config", str(tmp_path / "no.properties")), 2, "no.properties")


def test_serve_names_the_process_that_has_the_directory(daemon: Daemon) -> None:
    result = Commands("unused:1").run(
        *("serve", "--log-level", "error", "--set", "listeners=127.0.0.1:0"),
        *("--set", f"log.dirs={daemon.data_directory}"),
    )

    assert result.returncode == 1, result
    assert b"Traceback" not in result.stderr
    assert str(daemon.data_directory).encode() in result.stderr
