"""ACLs and quotas reach their listeners when they change, and only then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barnabas.broker.metadata.security.image import SecurityImage
from barnabas.broker.security_applier import SecurityApplier
from barnabas.protocol.messages.security.acls import Acl

ACL = Acl(2, "orders", 3, "User:alice", "*", 3, 3)


class Recorder:
    def __init__(self) -> None:
        self.calls: list[Mapping[Any, Any]] = []

    def replace(self, mapping: Mapping[Any, Any]) -> None:
        self.calls.append(mapping)


def test_each_listener_gets_the_first_image_and_then_its_changes() -> None:
    acls, quotas = Recorder(), Recorder()
    applier = SecurityApplier(acls=acls, quotas=[quotas])
    first = SecurityImage()
    applier.apply(first)
    applier.apply(first)
    second = replace(first, acls={bytes(16): ACL})
    applier.apply(second)
    third = replace(second, quotas={(("user", "u"),): {"producer_byte_rate": 1.0}})
    applier.apply(third)
    assert acls.calls == [first.acls, second.acls]
    assert quotas.calls == [first.quotas, third.quotas]


def test_a_broker_without_listeners_ignores_them() -> None:
    SecurityApplier().apply(SecurityImage())
