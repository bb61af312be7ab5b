"""The users of SCRAM: the credentials of one mechanism in the metadata image, and delegation tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.security.sasl.credential_shapes import CredentialShapes

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import SecurityImage
    from barnabas.protocol.sasl.scram_keys import ScramKeys, ScramMechanism
    from barnabas.protocol.sasl.scram_server import TokenLogin


class TokenLogins(Protocol):
    """The delegation tokens that can log in."""

    def login(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """Return how a token logs in; None: there is no such token, it has expired, or tokens are not enabled."""
        ...


class NoTokens:
    """A broker without delegation tokens."""

    def login(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """Return None."""
        return None


class ImageScramUsers:
    """`image()` returns the current image, so that a change holds from the next login on."""

    def __init__(
        self, mechanism: ScramMechanism, image: Callable[[], SecurityImage], tokens: TokenLogins, secret: bytes
    ) -> None:
        """`secret` determines the salts of unknown users; the same for the broker's lifetime."""
        self._mechanism = mechanism
        self._shapes = CredentialShapes(mechanism, secret)
        self._image = image
        self._tokens = tokens

    def keys(self, user: str) -> ScramKeys | None:
        """Return a user's keys; None: there is no such user."""
        return self._image().scram.get((user, self._mechanism.code))

    def made_up(self, user: str) -> tuple[bytes, int]:
        """Return the salt and iterations that a user without keys is offered."""
        return self._shapes.made_up(self._image().scram, user)

    def token(self, token_id: str) -> TokenLogin | None:
        """Return a token's login; None: it cannot log in."""
        return self._tokens.login(token_id, self._mechanism)
