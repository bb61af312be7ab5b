"""What a SASL listener takes from its configuration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.security.sasl.setup import (
    MAX_RECEIVE,
    MAX_RECEIVE_BYTES,
    MAX_TOKEN_RECEIVE_BYTES,
    OWN_LIMIT,
    MechanismParts,
    sasl_listener,
)
from barnabas.protocol.framing import FrameError, FrameLimit, frame_size

PARTS = dict.fromkeys(MechanismParts.__slots__, None) | {"further": {"OAUTHBEARER": lambda properties: None}}
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
    listener = sasl_listener(cast(Any, properties), cast(Any, None), MechanismParts(**cast(Any, PARTS)))
    assert listener.frame_limit() == FrameLimit(expected, MAX_RECEIVE if expected == configured else OWN_LIMIT)
    values["sasl.enabled.mechanisms"] = ["OAUTHBEARER"]
    assert listener.frame_limit().max_bytes == min(configured, MAX_TOKEN_RECEIVE_BYTES), "the list may change"


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (FrameLimit(1000, MAX_RECEIVE), "frame size 200000 is above sasl.server.max.receive.size=1000"),
        (
            FrameLimit(MAX_RECEIVE_BYTES, OWN_LIMIT),
            "frame size 200000 is above 16384 bytes, the broker's limit for clients that have not logged in",
        ),
    ],
)
def test_the_error_about_a_large_frame_names_the_limit_that_decides(limit: FrameLimit, text: str) -> None:
    with pytest.raises(FrameError) as refused:
        frame_size(bytearray((200_000).to_bytes(4, "big")), 0, *limit)
    assert str(refused.value) == text
