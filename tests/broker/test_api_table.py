"""The table of handlers: its modules and classes exist, and the classes take the given number of arguments."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from barnabas.broker.handlers import api_table
from barnabas.broker.handlers.api_table import HandlerContext
from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.native.bodies import SERVED

ROWS = api_table._ROWS
CONTEXT = set(HandlerContext._fields) | set(vars(HandlerContext))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.api.label)
def test_a_row_names_a_handler_and_its_arguments(row: api_table._Row) -> None:
    module, name = row.where.split(":")
    handler = getattr(import_module(f"barnabas.broker.handlers.{module}"), name)
    if row.arguments is None:
        assert inspect.isfunction(handler)
        return
    arguments = row.arguments.split(", ")
    inspect.signature(handler).bind(*arguments)
    assert {path.split(".")[0] for path in arguments} <= CONTEXT | {"probe"}


def test_every_api_of_both_dialects_has_one_handler() -> None:
    served = [row.api for row in ROWS] + [ApiKey.PRODUCE, ApiKey.FETCH]
    assert len(served) == len(set(served))
    assert set(served) == {api.key for api in (*KAFKA_APIS, *OWN_APIS)} >= set(SERVED)
