"""SecurityApplier: passes the ACLs and quotas of each new image to the authorizer and to the quota manager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import QuotaEntity, SecurityImage
    from barnabas.protocol.messages.security.acls import Acl


Prepared = TypeVar("Prepared")


class AclListener(Protocol[Prepared]):
    """An authorizer: decides by the ACLs of the last call of `replace`."""

    def prepare(self, acls: Mapping[bytes, Acl]) -> Prepared:
        """Return what `replace` needs for these ACLs, by id. Called in a thread; the mapping never changes."""
        ...

    def replace(self, prepared: Prepared) -> None:
        """Use these ACLs from now on. Called on the event loop."""
        ...


class QuotaListener(Protocol):
    """A quota manager: limits by the quotas of the last call."""

    def replace(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Use these quotas from now on. Called on the event loop; the mappings never change."""
        ...


class SecurityApplier:
    """Calls the listeners when their part of the image has changed. Credentials and tokens are read from the image."""

    def __init__(self, *, acls: AclListener[Any] | None = None, quotas: Sequence[QuotaListener] = ()) -> None:
        """`acls` None: the broker has no authorizer."""
        self._acls = acls
        self._quotas = quotas
        self._applied: SecurityImage | None = None

    def prepare(self, image: SecurityImage) -> Callable[[], None]:
        """Do the work of an image that takes long, in any thread, and return its `apply`, for the event loop."""
        before = self._applied
        if self._acls is None or (before is not None and before.acls is image.acls):
            return lambda: self._apply(image, None)
        prepared = self._acls.prepare(image.acls)
        return lambda: self._apply(image, prepared)

    def apply(self, image: SecurityImage) -> None:
        """Pass on the parts that differ from those of the last call; at the first call, both."""
        self.prepare(image)()

    def _apply(self, image: SecurityImage, prepared_acls: object | None) -> None:
        before = self._applied
        if self._acls is not None and prepared_acls is not None:
            self._acls.replace(prepared_acls)
        if before is None or before.quotas is not image.quotas:
            for listener in self._quotas:
                listener.replace(image.quotas)
        self._applied = image
