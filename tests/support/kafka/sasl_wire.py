"""A Kafka connection that logs in by a mechanism's client side."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.sasl.exchange import SaslClient
from tests.support.kafka.kafka_wire import KafkaWire


class SaslWire(KafkaWire):
    """`login` returns the last answer to SaslAuthenticate."""

    def login(self, mechanism: str, client: SaslClient) -> Any:
        """Run an exchange; returns when the client is complete or refused."""
        handshake = self.call("sasl_handshake", 1, mechanism=mechanism)
        assert handshake.error_code == 0, handshake
        message: bytes | None = client.start()
        while True:
            assert message is not None
            answer = self.call("sasl_authenticate", 2, auth_bytes=message)
            if answer.error_code:
                return answer
            message = client.respond(answer.auth_bytes)
            if client.is_complete:
                return answer
