"""FindCoordinator (key 10): which broker serves a group or a transactional id. A single node serves all.

Version 0 takes groups only; 1 added the type of the key and the error's message, 4 several keys in one request, 6 share
groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import LATEST, since, until, unwired
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int8, Int32, Message, String

GROUP_KEY = 0
TRANSACTION_KEY = 1
SHARE_KEY = 2

NO_NODE = -1

_KEYS_FROM: Final = 4
_SHARE_KEYS_FROM: Final = 6


class CoordinatorResult(Struct):
    """The address of a key's coordinator, or an error without one (-1, "", -1)."""

    key: String
    node_id: Int32 = NO_NODE
    host: String = ""
    port: Int32 = -1
    error: Error = ErrorCode.NONE
    message: Message = None


class FindCoordinatorResponse(Struct, flexible=3):
    """`found` has the results of every version."""

    throttle_ms: Int32 = since(1, default=0)
    error: Error = until(_KEYS_FROM - 1, default=ErrorCode.NONE)
    message: Message = since(1, until=_KEYS_FROM - 1, default="")
    node_id: Int32 = until(_KEYS_FROM - 1, default=0)
    host: String = until(_KEYS_FROM - 1, default="")
    port: Int32 = until(_KEYS_FROM - 1, default=0)
    coordinators: Sequence[CoordinatorResult] = since(_KEYS_FROM, default=())
    version: int = unwired(default=LATEST)

    @property
    def found(self) -> Sequence[CoordinatorResult]:
        """In the order of the request; before version 4 one with an empty key."""
        if self.version >= _KEYS_FROM:
            return self.coordinators
        only = CoordinatorResult(
            key="", node_id=self.node_id, host=self.host, port=self.port, error=self.error, message=self.message
        )
        return [only]

    def encode(self, version: int) -> bytes:
        """Return the bytes. A version without results of keys has that of the only one as its own."""
        if self.coordinators and version < _KEYS_FROM:
            (only,) = self.coordinators
            return FindCoordinatorResponse(
                error=only.error, message=only.message, node_id=only.node_id, host=only.host, port=only.port
            ).encode(version)
        return super().encode(version)


class FindCoordinatorRequest(Request[FindCoordinatorResponse], api=ApiKey.FIND_COORDINATOR, flexible=3):
    """`key_type`: 0 the keys are group ids, 1 transactional ids, 2 `group:topic id:partition` if `takes_share_keys`."""

    key: String = until(_KEYS_FROM - 1, default="")
    key_type: Int8 = since(1, default=GROUP_KEY)
    coordinator_keys: Sequence[String] = since(_KEYS_FROM, default=())

    @classmethod
    def of_key(cls, key: str, key_type: int) -> FindCoordinatorRequest:
        """Return a request about one key, for any version."""
        return cls(key=key, key_type=key_type, coordinator_keys=(key,))

    @property
    def keys(self) -> Sequence[str]:
        """One before version 4, any number from then on."""
        return self.coordinator_keys if self.version >= _KEYS_FROM else (self.key,)

    @property
    def takes_share_keys(self) -> bool:
        """Whether the version has keys of share partitions."""
        return self.version >= _SHARE_KEYS_FROM

    def refused(self, code: ErrorCode, message: str) -> FindCoordinatorResponse:
        """The code for every key."""
        return FindCoordinatorResponse(
            coordinators=[CoordinatorResult(key=each, error=code, message=message) for each in self.keys]
        )
