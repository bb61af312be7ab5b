"""Steps of a client's connection, and the error that ends one."""

from __future__ import annotations

from enum import StrEnum


class Step(StrEnum):
    """The steps in their order."""

    LOOK_UP = "name resolution"
    TCP = "TCP"
    TLS = "TLS"
    API_VERSIONS = "ApiVersions"
    SASL_HANDSHAKE = "SASL handshake"
    LOGIN = "SASL login"
    METADATA = "Metadata"
    AUTHORIZATION = "authorization"
    ADVERTISED_ADDRESS = "advertised address"


class NoAnswerError(Exception):
    """The second half of a sentence, "but ...", with the reason for a missing answer and what to change."""

    def __init__(self, reason: str, step: Step | None = None) -> None:
        """`step` is the one that failed, if that is not the step that was tried."""
        super().__init__(reason.rstrip("."))
        self.step = step
