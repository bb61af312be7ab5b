"""New SCRAM credentials, as a client sends them: the broker never sees the password."""

from __future__ import annotations

import secrets

from barnabas.protocol.messages.security.scram_credentials import ScramUpsertion
from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SALT_BYTES, ScramMechanism, salted_password


def scram_upsertion(
    user: str, mechanism: ScramMechanism, password: str, iterations: int = MIN_ITERATIONS
) -> ScramUpsertion:
    """Return a credential with a new salt, for AlterUserScramCredentials."""
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salted_password(mechanism, password, salt, iterations)
    return ScramUpsertion(name=user, mechanism=mechanism.code, iterations=iterations, salt=salt, salted_password=salted)
