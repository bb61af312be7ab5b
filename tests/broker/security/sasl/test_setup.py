"""What a SASL listener takes from its configuration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.security.sasl.setup import (
    MAX_RECEIVE_BYTES,
    MAX_TOKEN_RECEIVE_BYTES,
    SaslParts,
    sasl_listener,
)

PARTS = dict.fromkeys(SaslParts.__slots__, None) | {"more_mechanisms": {"OAUTHBEARER": lambda properties: None}}
KAFKA_DEFAULT = 524_288


@pytest.mark.parametrize(
    ("mechanisms", "configured", "expected"),
    [
        (["SCRAM-SHA-256"], KAFKA_DEFAULT, MAX_RECEIVE_BYTES),
        (["SCRAM-SHA-256", "OAUTHBEARER"], KAFKA_DEFAULT, MAX_TOKEN_RECEIVE_BYTES),
        (["SCRAM-SHA-256"], 1000, 1000),
        (["OAUTHBEARER"], 1000, 1000),
    ],
)
def test_requests_before_the_login_are_as_large_as_the_mechanisms_need(
    mechanisms: list[str], configured: int, expected: int
) -> None:
    values: dict[str, Any] = {"sasl.enabled.mechanisms": mechanisms, "sasl.server.max.receive.size": configured}
    properties = SimpleNamespace(
        listener="SECURE",
        get_int=lambda name, mechanism=None: values.get(name, 1),
        get_list=values.__getitem__,
    )
    listener = sasl_listener(cast(Any, properties), SaslParts(**cast(Any, PARTS)))
    assert listener.max_receive_bytes() == expected
    values["sasl.enabled.mechanisms"] = ["OAUTHBEARER"]
    assert listener.max_receive_bytes() == min(configured, MAX_TOKEN_RECEIVE_BYTES), "the list may change"
