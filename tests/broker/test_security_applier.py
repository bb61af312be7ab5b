"""ACLs and quotas reach their listeners when they change, and only then."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from barnabas.broker.metadata.security.image import SecurityImage
from barnabas.broker.security_applier import SecurityApplier
from barnabas.protocol.messages.security.acls import Acl

ACL = Acl(2, "orders", 3, "User:alice", "*", 3, 3)


class Recorder:
    def __init__(self) -> None:
        self.calls: list[Mapping[Any, Any]] = []
        self.prepared_in: list[int] = []

    def prepare(self, mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
        self.prepared_in.append(threading.get_ident())
        return mapping

    def replace(self, mapping: Mapping[Any, Any]) -> None:
        self.calls.append(mapping)


def test_each_listener_gets_the_first_image_and_then_its_changes() -> None:
    acls, quotas = Recorder(), Recorder()
    applier = SecurityApplier(acls=acls, quotas=[quotas])
    first = SecurityImage()
    applier.apply(first)
    applier.apply(first)
    second = first._replace(acls={bytes(16): ACL})
    applier.apply(second)
    third = second._replace(quotas={(("user", "u"),): {"producer_byte_rate": 1.0}})
    applier.apply(third)
    assert acls.calls == [first.acls, second.acls]
    assert quotas.calls == [first.quotas, third.quotas]


def test_the_index_of_acls_is_prepared_in_another_thread_and_used_by_the_caller() -> None:
    acls = Recorder()
    applier = SecurityApplier(acls=acls)
    applier.apply(SecurityImage())
    image = SecurityImage(acls={bytes(16): ACL})
    with ThreadPoolExecutor(1) as executor:
        use = executor.submit(applier.prepare, image).result()
    assert acls.prepared_in[-1] != threading.get_ident()
    assert len(acls.calls) == 1
    use()
    assert acls.calls[1:] == [image.acls]
    assert len(acls.prepared_in) == 2


def test_a_broker_without_listeners_ignores_them() -> None:
    SecurityApplier().apply(SecurityImage())
