"""Driver for Debian's kcat: one run of the command line per request. It has no admin calls."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.clients.python.loop import (
    Answer,
    Request,
    Stream,
    UnsupportedError,
    packed_record,
    serve,
    unpack,
    unpacked_headers,
)

TIMEOUT_S = 40.0
_KEY_END, _RECORD_END = "\x1f", "\x1e"
_FORMAT = "%o %T %K %S\\n%k%s%h\\n"
_ERRORS = {"Message size too large": 10}


def _kcat(mode: str, request: Request, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = ["kcat", mode, "-b", request["bootstrap"], "-m", "30", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)


def _checked(done: subprocess.CompletedProcess[bytes]) -> bytes:
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    return done.stdout


def _settings(request: Request) -> list[str]:
    settings = {
        "acks": request.get("acks", "all"),
        "enable.idempotence": str(request.get("idempotence", False)).lower(),
        "message.max.bytes": "10000000",
    }
    listed = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    return [*listed, "-z", request.get("codec", "none"), "-t", request["topic"]]


def produce(request: Request) -> Answer:
    records = request["records"]
    headers = unpacked_headers(records[0])
    arguments = [*_settings(request), "-p", str(records[0]["partition"]), "-Z"]
    for name, content in headers:
        arguments += ["-H", name if content is None else f"{name}={content.decode()}"]
    if len(records) == 1 and records[0]["key"] is None:  # a whole file can contain any bytes
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "value"
            path.write_bytes(unpack(records[0]["value"]) or b"")
            done = _kcat("-P", request, *arguments, str(path))
    else:
        lines = [
            (unpack(record["key"]) or b"") + _KEY_END.encode() + (unpack(record["value"]) or b"") + _RECORD_END.encode()
            for record in records
        ]
        done = _kcat("-P", request, *arguments, "-K", _KEY_END, "-D", _RECORD_END, stdin=b"".join(lines))
    said = done.stderr.decode(errors="replace")
    error: Any = None
    if done.returncode or "failed" in said:
        error = next((code for text, code in _ERRORS.items() if text in said), said)
    return {"results": [{"offset": None, "error": error}] * len(records)}


def stream(request: Request) -> Answer:
    numbers = Stream(request)
    command = ["kcat", "-P", "-E", "-b", request["bootstrap"], *_settings({**request, "idempotence": True}), "-p", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        while numbers.goes_on():
            process.stdin.write(numbers.next_value() + b"\n")
            numbers.ack()  # kcat does not report acknowledgements, so sent records count as acknowledged
        process.stdin.close()
        _, said = b"", process.stderr.read() if process.stderr else b""
        code = process.wait(TIMEOUT_S)
    if code:
        numbers.ack(said.decode(errors="replace"))
    return numbers.answer()


def read(request: Request) -> Answer:
    place = str(request["offset"]) if request.get("offset") is not None else "beginning"
    if request.get("timestamp") is not None:
        place = f"s@{request['timestamp']}"
    limits = ["-c", str(request["count"]), "-p", str(request["partition"]), "-o", place, "-f", _FORMAT]
    settings = ["-X", "auto.offset.reset=earliest", "-X", "fetch.message.max.bytes=10000000", "-q"]
    data = _checked(_kcat("-C", request, "-t", request["topic"], *limits, *settings))
    records: list[Answer] = []
    while data:
        head, _, data = data.partition(b"\n")
        offset, timestamp, key_size, value_size = map(int, head.split())
        key, data = (None, data) if key_size < 0 else (data[:key_size], data[key_size:])
        value, data = (None, data) if value_size < 0 else (data[:value_size], data[value_size:])
        line, _, data = data.partition(b"\n")
        records.append(packed_record(offset, timestamp, key, value, _headers(line.decode())))
    return {"records": records}


def _headers(line: str) -> list[tuple[str, bytes | None]]:
    """Parse kcat's `a=1,b=2`; a null value is `a=NULL`."""
    pairs = [pair.partition("=") for pair in line.split(",")] if line else []
    return [(name, None if content == "NULL" else content.encode()) for name, _, content in pairs]


def offsets(request: Request) -> Answer:
    place = f"{request['topic']}:{request['partition']}"
    found = []
    for timestamp in (-2, -1, request["timestamp"]):
        said = _checked(_kcat("-Q", request, "-t", f"{place}:{timestamp}")).decode()
        found.append(int(said.rsplit(None, 1)[1]))
    return dict(zip(("earliest", "latest", "at"), found, strict=True))


def version(_request: Request) -> Answer:
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
    numbers = re.findall(r"(?:Version|librdkafka) ([0-9.]+)", said)
    return {"version": f"{numbers[0]} (librdkafka {numbers[1]})"}


def transactions(_request: Request) -> Answer:
    raise UnsupportedError("each of its runs is one transaction in one partition")


if __name__ == "__main__":
    serve(
        {
            "version": version,
            "produce": produce,
            "stream": stream,
            "read": read,
            "offsets": offsets,
            "txn_open": transactions,
            "transform": transactions,
        }
    )
