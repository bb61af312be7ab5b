"""Records: the list by offset and time, one record, downloads, and contents that try to break a page."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.producer.producer import Producer
from barnabas.console.records.decoding import decode
from tests.support.console import ConsoleClient, running_console
from tests.support.daemon import Daemon

START_MS = 1_790_000_000_000
HOSTILE = b'</code><script>alert("1")</script>'
BINARY = bytes(range(256))
LARGE = b"<script>" * 1_250_000
"""10 MB."""


@pytest.fixture(scope="module", autouse=True)
def records(broker: Daemon) -> None:
    """`plain` has 120 records a minute apart; `hostile` has what a page must not believe; `moves` has a transaction."""

    async def fill() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic("plain")
            await admin.create_topic("hostile", configs={"max.message.bytes": "11000000"})
            await admin.create_topic("moves")
            await admin.create_topic("unfinished")
            await admin.create_topic("produced")
        config = ProducerConfig(bootstrap=broker.bootstrap, max_request_bytes=11_000_000, compression="zstd")
        async with Producer(config) as producer:
            for number in range(120):
                value = b'{"order": %d}' % number
                await producer.send("plain", value, b"k%d" % number, timestamp_ms=START_MS + 60_000 * number)
            headers = [("<b>name</b>", b"\x1b[31mred"), ("none", None)]
            await producer.send_and_wait("hostile", HOSTILE, HOSTILE, headers=headers)
            await producer.send_and_wait("hostile", BINARY)
            await producer.send_and_wait("hostile", None, b"gone")
            await producer.send_and_wait("hostile", LARGE)
            await producer.send_and_wait("hostile", "right\u202eto left".encode())
            await producer.flush()
        async with Producer(ProducerConfig(bootstrap=broker.bootstrap, transactional_id="mover")) as mover:
            async with mover.transaction():
                await mover.send("moves", b"moved")

    asyncio.run(fill())


def offsets(page: str) -> list[int]:
    return [int(each) for each in re.findall(r"/records/0/(\d+)\"", page)]


def test_the_last_records_are_shown_first_and_pages_lead_to_all(console: ConsoleClient) -> None:
    page = console.get("/topics/plain/records").text
    assert offsets(page) == list(range(70, 120))
    assert "{&#34;order&#34;: 119}" in page
    earlier = re.search(r'href="(\?[^"]+)" rel="prev"', page)
    assert earlier is not None
    assert offsets(console.get("/topics/plain/records" + earlier[1].replace("&amp;", "&")).text) == list(range(20, 70))


def test_records_are_found_by_offset_and_by_time(console: ConsoleClient) -> None:
    assert offsets(console.get("/topics/plain/records?offset=7").text)[0] == 7
    at = START_MS + 60_000 * 33 - 5
    assert offsets(console.get(f"/topics/plain/records?time={at}").text)[0] == 33
    assert "No record is as late as" in console.get("/topics/plain/records?time=2060-01-01").text
    assert offsets(console.get("/topics/plain/records?offset=99999").text) == []


@pytest.mark.parametrize(
    ("path", "status", "named"),
    [
        ("/topics/plain/records?offset=x", 400, "&#39;x&#39; is not a number for the offset"),
        ("/topics/plain/records?time=soon", 400, "&#39;soon&#39; is neither ISO 8601"),
        ("/topics/plain/records?partition=9", 404, "plain has no partition 9"),
        ("/topics/plain/records/0/500", 404, "plain-0 has no record at offset 500"),
        ("/topics/plain/records/0/5/secret", 404, "There is no such page"),
    ],
)
def test_what_is_not_there_is_named(console: ConsoleClient, path: str, status: int, named: str) -> None:
    page = console.get(path)
    assert page.status == status
    assert named in page.text


def test_a_record_has_its_batch_and_headers(console: ConsoleClient) -> None:
    page = console.get("/topics/plain/records/0/42").text
    assert "&#34;order&#34;: 42" in page
    assert "zstd, 2" in page
    assert "CREATE_TIME" in page


def test_a_record_leads_to_all_records_with_its_key(console: ConsoleClient) -> None:
    assert 'href="/topics/plain/search?key=k42"' in console.get("/topics/plain/records/0/42").text
    assert "search?key=%3C/code%3E%3Cscript%3E" in console.get("/topics/hostile/records/0/0").text
    assert "search?key=" not in console.get("/topics/hostile/records/0/1").text  # it has no key


def test_contents_cannot_break_a_page(console: ConsoleClient) -> None:
    for path in ("/topics/hostile/records", "/topics/hostile/records/0/0", "/topics/hostile/records/0/4"):
        page = console.get(path).text
        assert "<script>alert" not in page
        assert "<b>name" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
    assert len(console.get("/topics/hostile/records").text) < 50_000, "the value of 10 MB is shortened"
    large = console.get("/topics/hostile/records/0/3").text
    assert "This is not all of it" in large
    assert "&lt;script&gt;" in large
    assert "<script>&" not in large
    assert "00 01 02" in console.get("/topics/hostile/records/0/1").text
    assert ">null<" in console.get("/topics/hostile/records/0/2").text


def test_a_download_is_the_stored_bytes(console: ConsoleClient) -> None:
    for offset, expected in ((1, BINARY), (3, LARGE)):
        connection = HTTPConnection("127.0.0.1", console.port, timeout=30)
        connection.request("GET", f"/topics/hostile/records/0/{offset}/value")
        answer = connection.getresponse()
        assert answer.read() == expected
        assert answer.headers["Content-Disposition"] == f'attachment; filename="hostile-0-{offset}.value"'
        assert answer.headers["Content-Type"] == "application/octet-stream"
        connection.close()


def test_the_end_of_a_transaction_is_named(console: ConsoleClient) -> None:
    page = console.get("/topics/moves/records").text
    assert "transaction committed" in page
    assert "In a transaction</dt><dd>yes" in console.get("/topics/moves/records/0/0").text


def test_transactional_ids_are_listed_with_what_is_open(console: ConsoleClient, broker: Daemon) -> None:
    async def look() -> str:
        config = ProducerConfig(bootstrap=broker.bootstrap, transactional_id="open")
        async with Producer(config) as producer, producer.transaction():
            await producer.send_and_wait("unfinished", b"open")
            return await asyncio.to_thread(lambda: console.get("/transactions?sort=name").text)

    page = asyncio.run(look())
    assert re.findall(r'scope="row">([^<]+)<', page) == ["mover", "open"]
    assert "Ongoing" in page
    assert "unfinished-0" in page


def test_settings_name_the_layer_that_sets_them(console: ConsoleClient) -> None:
    page = console.get("/topics/hostile/settings").text
    first = re.search(r"<tbody>\s*<tr>(.*?)</tr>", page, re.DOTALL)
    assert first is not None
    assert "max.message.bytes" in first[1]
    assert "11000000" in first[1]
    assert "<td>topic</td>" in first[1]


def events_of(console: ConsoleClient, path: str, count: int) -> list[tuple[str, str]]:
    """Read a stream until it ends, or until `count` events; return their names and texts."""
    found: list[tuple[str, str]] = []
    connection = HTTPConnection("127.0.0.1", console.port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": console.host})
        answer = connection.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        name, lines = "", []
        while len(found) < count and (line := answer.readline().decode()):
            if line.startswith("event: "):
                name = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                lines.append(line.removeprefix("data: ").rstrip("\n"))
            elif not line.strip() and name:
                found.append((name, "\n".join(lines)))
                name, lines = "", []
    finally:
        connection.close()
    return found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=order%22:%2011", [11, *range(110, 120)]),
        ("field=order=7", [7]),
        ("text=k1&field=order=117", [117]),
        ("text=k&offset=118", [118, 119]),
        (f"text=k&time={START_MS + 60_000 * 117}", [117, 118, 119]),
        ("key=k1", [1]),
        ("key=k1&text=nowhere", []),
        ("key=k", []),
        ("text=nowhere", []),
    ],
)
def test_a_search_finds_text_and_fields(console: ConsoleClient, query: str, found: list[int]) -> None:
    events = events_of(console, f"/topics/plain/search/stream?{query}", 100)
    assert offsets("".join(text for name, text in events if name == "rows")) == found
    assert events[-1][0] == "end"
    assert any(f" {len(found)} found" in text for name, text in events if name == "progress")
    assert "data-stop" in console.get(f"/topics/plain/search?{query}").text


def test_a_search_is_bounded_and_a_wrong_field_is_named(console: ConsoleClient) -> None:
    page = console.get("/topics/plain/search?field=order")
    assert (page.status, "is not of the form name=value" in page.text) == (400, True)
    rows = "".join(text for name, text in events_of(console, "/topics/hostile/search/stream?text=", 100))
    assert HOSTILE.decode() not in rows
    assert "&lt;/code&gt;&lt;script&gt;" in rows


def test_the_end_of_a_topic_is_followed(changing_console: ConsoleClient) -> None:
    assert changing_console.get("/topics/produced/produce").status == 200
    with ThreadPoolExecutor() as pool:
        events = pool.submit(events_of, changing_console, "/topics/produced/tail/stream", 40)
        produced = changing_console.post("/topics/produced/produce", {"key": "new", "value": "line 1\r\nline 2"})
        while not events.done():
            changing_console.post("/topics/produced/produce", {"key": "new", "value": "<b>next</b>"})
        rows = "".join(text for name, text in events.result() if name == "rows")
    assert produced.status == 303
    assert "&lt;b&gt;next&lt;/b&gt;" in rows


def test_partitions_are_merged_by_time(console: ConsoleClient) -> None:
    page = console.get(f"/topics/plain/records?partition=all&time={START_MS + 60_000 * 20}").text
    assert offsets(page) == list(range(20, 70))
    later = re.search(r'href="(\?[^"]+)" rel="next"', page)
    assert later is not None
    assert offsets(console.get("/topics/plain/records" + html.unescape(later[1])).text) == list(range(69, 119))
    assert offsets(console.get("/topics/plain/records?partition=all").text) == list(range(70, 120))


def test_a_record_is_produced(changing_console: ConsoleClient) -> None:
    assert changing_console.get("/topics/produced/produce").status == 200
    form = {"key": "00ff", "no_value": "1", "encoding": "hex", "headers": "trace = 1", "partition": "0"}
    answer = changing_console.post("/topics/produced/produce", form)
    assert answer.status == 303
    page = changing_console.get(answer.headers["location"]).text
    assert "00 ff" in page
    assert '<th scope="row">trace</th>' in page
    for wrong in ({**form, "key": "xyz"}, {**form, "headers": "nothing"}):
        assert changing_console.post("/topics/produced/produce", wrong).status == 409
    assert changing_console.post("/topics/produced/produce", {**form, "partition": "9"}).status == 404


def test_a_console_that_only_shows_produces_nothing(console: ConsoleClient) -> None:
    assert console.get("/topics/produced/produce").status == 403
    assert console.post("/topics/produced/produce", {"csrf_token": "guessed"}).status == 403


@pytest.mark.parametrize(
    ("data", "wanted", "text", "kind"),
    [
        (b'{"a":[1,2]}', "guess", '{"a": [1, 2]}', "json"),
        (b'{"a":[1,2]}', "text", '{"a":[1,2]}', "text"),
        (b"{broken", "json", "{broken", "text"),
        (b"[" * 100_000, "guess", "[" * 50, "text"),
        (b"\xff\xfe", "guess", "ff fe", "hex"),
        (b"\xff\xfe", "text", "\N{REPLACEMENT CHARACTER}" * 2, "text"),
        ("é".encode() * 400, "guess", "é" * 50, "text"),
        (b"a\x00b\x1b", "guess", "a\\x00b\\x1b", "text"),
        (b"", "guess", "", "text"),
        (b"\x82\xa1a\x01\xa1b\xc4\x02\x00\xff", "guess", '{"a": 1, "b": "0x00ff"}', "msgpack"),
        (b"\x82\xa1a", "guess", "82 a1 61", "hex"),
        (b"\xdd\xff\xff\xff\xff", "msgpack", "dd ff ff ff ff", "hex"),
        (b"\x08\x96\x01\x12\x02hi\x12\x02ho", "protobuf", '{"1": 150, "2": ["hi", "ho"]}', "protobuf"),
        (b"\x1a\x03\x08\x96\x01", "protobuf", '{"3": {"1": 150}}', "protobuf"),
        (b"\x12\xff", "protobuf", "12 ff", "hex"),
        (b"\x02\x06", "avro", "\\x02\\x06", "text"),
        (None, "hex", "null", "null"),
    ],
)
def test_bytes_are_decoded_as_chosen_or_guessed(data: bytes | None, wanted: str, text: str, kind: str) -> None:
    found = decode(data, wanted, 50)
    assert (found.text, found.format) == (text, kind)
    assert found.is_cut == (data is not None and len(data) > 100)


def message(name: str, *fields: tuple[str, int, str, str]) -> DescriptorProto:
    """A message type; each field is its name, number, type, and the type's name of a message."""
    return DescriptorProto(
        name=name,
        field=[
            FieldDescriptorProto(name=each, number=number, type=kind, type_name=type_name or None)
            for each, number, kind, type_name in fields
        ],
    )


def serialized(file: FileDescriptorProto) -> str:
    """A file as a registry tells it with `format=serialized`."""
    return base64.b64encode(file.SerializeToString()).decode()


AVRO_SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "array", "items": "string"}}],
}
ANSWERS = {
    "/schemas/ids/1": {"schema": json.dumps(AVRO_SCHEMA)},
    "/schemas/ids/2": {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"},
    "/schemas/ids/3": {"schema": '{"type": "array", "items": "null"}'},
    "/schemas/ids/4": {"schema": "{}", "schemaType": "JSON"},
    "/schemas/ids/6": {"schema": 'syntax = "proto3"; ...', "schemaType": "PROTOBUF"},
    "/schemas/ids/6?format=serialized": {
        "schema": serialized(
            FileDescriptorProto(
                name="order.proto",
                package="shop",
                syntax="proto3",
                dependency=["common/money.proto", "google/protobuf/timestamp.proto"],
                message_type=[
                    message("Other"),
                    message(
                        "Order",
                        ("id", 1, "TYPE_INT32", ""),
                        ("price", 2, "TYPE_MESSAGE", ".Money"),
                        ("at", 3, "TYPE_MESSAGE", ".google.protobuf.Timestamp"),
                    ),
                ],
            )
        ),
        "references": [{"name": "common/money.proto", "subject": "money/eu", "version": 3}],
    },
    "/subjects/money%2Feu/versions/3?format=serialized": {
        "schema": serialized(
            FileDescriptorProto(message_type=[message("Money", ("cents", 1, "TYPE_SINT64", ""))], syntax="proto3")
        )
    },
}


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """The URL of a schema registry with a password."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = ANSWERS.get(self.path)
            is_allowed = self.headers["Authorization"] == "Basic dTpw"
            self.send_response(404 if found is None else 200 if is_allowed else 401)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://u:p@127.0.0.1:{server.server_port}"
        server.shutdown()


def test_records_are_decoded_by_their_schemas(broker: Daemon, registry: str, tmp_path: Path) -> None:
    encoded = BytesIO()
    fastavro.schemaless_writer(encoded, AVRO_SCHEMA, {"id": 7, "tags": ["a", "<b>"]})
    values = [
        b"\0\0\0\0\1" + encoded.getvalue(),
        b"\0\0\0\0\2\0\x08\x07",
        b"\0\0\0\0\3" + b"\xfe" * 9 + b"\x01",
        b'\0\0\0\0\4{"a": 1}',
        b"\0\0\0\0\5unknown",
        b"\0\0\0\0\1\xff",
        b"\0\0\0\0\6\2\2" + b"\x08\x07\x12\x03\x08\xac\x02\x1a\x02\x08\x01",
        b"\0\0\0\0\6\2\x08" + b"\x08\x07",
    ]

    async def fill() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic("encoded")
        async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
            for each in values:
                await producer.send_and_wait("encoded", each)

    asyncio.run(fill())
    with running_console(broker.bootstrap, "--schema-registry", registry, log=tmp_path / "stderr") as console:
        page = html.unescape(console.get("/topics/encoded/records").text)
        assert '{"id": 7, "tags": ["a", "<b>"]}' in page
        assert '{"1": 7}' in page
        assert '{"id": 7, "price": {"cents": "150"}, "at": "1970-01-01T00:00:01Z"}' in page
        assert r"\x00\x00\x00\x00\x06\x02\x08\x08\x07" in page, "the schema has no fifth type"
        assert '{"a": 1}' in page
        assert "could mean billions" in console.get("/topics/encoded/records/0/2").text
        assert "the registry has no schema 5" in console.get("/topics/encoded/records/0/4").text
        assert "00 00 00 00 01 ff" in console.get("/topics/encoded/records/0/5").text
