"""Driver of a Python client that logs in: `python -m tests.interop.clients.python.secure LIBRARY`.

    {"op": "round", "bootstrap", "topic", "group", "value", "timeout_ms", "login": {"ca", "certificate", "mechanism",
     "user", "password", "token", "is_delegated"}}
        -> {"values": [...]}: produces the value, and consumes the topic in the group until the value arrives

`ca` and `certificate` are PEM files; `certificate` contains the client's key and chain, and is null without mTLS.
Without a `mechanism` the security protocol is SSL. `token` is OAUTHBEARER's; with `is_delegated`, user and password are
a delegation token's id and HMAC. {"error": "class: text"} is the client's first error; kafka-python and aiokafka only
log why a connection failed, so their logs are appended. The secure drivers in other languages use the same format.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.interop.clients.python.loop import Answer, Request, serve

_TOKEN_LIFETIME_S = 3600


def _deadline(request: Request) -> float:
    return time.monotonic() + float(request["timeout_ms"]) / 1000


def confluent(request: Request) -> Answer:
    """Run a round with confluent-kafka."""
    from confluent_kafka import Consumer, KafkaError, Producer

    login = request["login"]
    errors: list[str] = []

    def failed(error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # follows the error that explains it
            errors.append(f"{error.name()}: {error.str()}")

    settings: dict[str, Any] = {
        "bootstrap.servers": request["bootstrap"],
        "security.protocol": "SASL_SSL" if login["mechanism"] else "SSL",
        "ssl.ca.location": login["ca"],
        "error_cb": failed,
        "log_level": 0,
    }
    if login["certificate"]:
        settings |= {"ssl.certificate.location": login["certificate"], "ssl.key.location": login["certificate"]}
    if login["mechanism"] == "OAUTHBEARER":
        # The lifetime is longer than an expired token's, so that the broker judges the token.
        settings["oauth_cb"] = lambda _: (login["token"], time.time() + _TOKEN_LIFETIME_S)
    if login["mechanism"]:
        settings["sasl.mechanism"] = login["mechanism"]
    if login["user"]:
        settings |= {"sasl.username": login["user"], "sasl.password": login["password"]}

    producer = Producer(settings)
    producer.produce(
        request["topic"],
        request["value"].encode(),
        on_delivery=lambda error, _: None if error is None else failed(error),
    )
    deadline = _deadline(request)
    while len(producer) and not errors and time.monotonic() < deadline:
        producer.poll(0.1)
    if errors or len(producer):
        producer.purge()
        return {"error": errors[0] if errors else "no answer in time"}
    values: list[str] = []
    consumer = Consumer({**settings, "group.id": request["group"], "auto.offset.reset": "earliest"})
    consumer.subscribe([request["topic"]])
    while request["value"] not in values and not errors and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append((message.value() or b"").decode())
            consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return {"error": errors[0]} if errors else {"values": values}


def _context(login: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=login["ca"])
    if login["certificate"]:
        context.load_cert_chain(login["certificate"])
    return context


def _shared_settings(request: Request) -> dict[str, Any]:
    """Return the settings that kafka-python and aiokafka have in common."""
    login = request["login"]
    settings: dict[str, Any] = {
        "bootstrap_servers": request["bootstrap"],
        "ssl_context": _context(login),
        "security_protocol": "SASL_SSL" if login["mechanism"] else "SSL",
    }
    if login["mechanism"]:
        settings["sasl_mechanism"] = login["mechanism"]
    if login["user"]:
        settings |= {"sasl_plain_username": login["user"], "sasl_plain_password": login["password"]}
    return settings


def kafka_python(request: Request) -> Answer:
    """Run a round with kafka-python."""
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        """Returns the request's token."""

        def token(self) -> str:
            return str(request["login"]["token"])

    settings = _shared_settings(request) | {"bootstrap_timeout_ms": request["timeout_ms"]}
    if request["login"]["token"]:
        settings["sasl_oauth_token_provider"] = Provider()
    with KafkaProducer(**settings, max_block_ms=request["timeout_ms"]) as producer:
        producer.send(request["topic"], request["value"].encode()).get(request["timeout_ms"] / 1000)
    values: list[str] = []
    consumer = KafkaConsumer(
        request["topic"], **settings, group_id=request["group"], auto_offset_reset="earliest", enable_auto_commit=False
    )
    deadline = _deadline(request)
    while request["value"] not in values and time.monotonic() < deadline:
        for batch in consumer.poll(timeout_ms=500).values():
            values += [found.value.decode() for found in batch]
    consumer.commit()
    consumer.close()
    return {"values": values}


async def _aiokafka(request: Request) -> Answer:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        """Returns the request's token."""

        async def token(self) -> str:
            return str(request["login"]["token"])

    settings = _shared_settings(request)
    if request["login"]["token"]:
        settings["sasl_oauth_token_provider"] = Provider()
    async with AIOKafkaProducer(**settings, request_timeout_ms=request["timeout_ms"]) as producer:
        await producer.send_and_wait(request["topic"], request["value"].encode())
    values: list[str] = []
    consumer = AIOKafkaConsumer(
        request["topic"], **settings, group_id=request["group"], auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer, asyncio.timeout(request["timeout_ms"] / 1000):
        while request["value"] not in values:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                values += [found.value.decode() for found in batch]
        await consumer.commit()
    return {"values": values}


def aio(request: Request) -> Answer:
    """Run a round with aiokafka."""
    return asyncio.run(_aiokafka(request))


class _Log(logging.Handler):
    """Collects warnings and errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def with_log(run: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """Append what the client has logged to its error."""

    def logged(request: Request) -> Answer:
        log = _Log()
        logging.getLogger().addHandler(log)
        try:
            return run(request)
        except Exception as error:  # noqa: BLE001 - the test compares it
            return {"error": "\n".join([f"{type(error).__name__}: {error}", *log.lines])}
        finally:
            logging.getLogger().removeHandler(log)

    return logged


LIBRARIES: Mapping[str, Callable[[Request], Answer]] = {
    "confluent": confluent,
    "kafka-python": with_log(kafka_python),
    "aiokafka": with_log(aio),
}

if __name__ == "__main__":
    serve({"round": LIBRARIES[sys.argv[1]]})
