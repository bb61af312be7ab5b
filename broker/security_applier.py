"""SecurityApplier: passes the ACLs and quotas of each new image to the authorizer and to the quota manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import Acl, QuotaEntity, SecurityImage


class AclListener(Protocol):
    """An authorizer: decides by the ACLs of the last call."""

    def replace(self, acls: Mapping[bytes, Acl]) -> None:
        """Use these ACLs, by id, from now on. Called on the event loop; the mapping never changes."""
        ...


class QuotaListener(Protocol):
    """A quota manager: limits by the quotas of the last call."""

    def replace(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Use these quotas from now on. Called on the event loop; the mappings never change."""
        ...


class SecurityApplier:
    """Calls the listeners when their part of the image has changed. Credentials and tokens are read from the image."""

    def __init__(self, *, acls: AclListener | None = None, quotas: Sequence[QuotaListener] = ()) -> None:
        """`acls` None: the broker has no authorizer."""
        self._acls = acls
        self._quotas = quotas
        self._applied: SecurityImage | None = None

    def apply(self, image: SecurityImage) -> None:
        """Pass on the parts that differ from those of the last call; at the first call, both."""
        before = self._applied
        if self._acls is not None and (before is None or before.acls is not image.acls):
            self._acls.replace(image.acls)
        if before is None or before.quotas is not image.quotas:
            for listener in self._quotas:
                listener.replace(image.quotas)
        self._applied = image
