"""The first SCRAM user of a log directory, written before the broker's first start, as `kafka-storage format` does."""

from __future__ import annotations

import secrets
from pathlib import Path

from barnabas.broker.metadata.security.scram import plan_alter_scram
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, change_stored
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest, ScramUpsertion
from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SALT_BYTES, SCRAM_MECHANISMS, salted_password


def write_first_user(log_dir: Path, user: str, password: str, mechanism: str) -> None:
    """Create a log directory with one SCRAM user. Raises CommandFailure."""
    kind = SCRAM_MECHANISMS[mechanism]
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salted_password(kind, password, salt, MIN_ITERATIONS)
    request = AlterUserScramCredentialsRequest(
        upsertions=[ScramUpsertion(user, kind.code, MIN_ITERATIONS, salt, salted)]
    )
    (result,) = change_stored(Directories((log_dir,), None), lambda image: plan_alter_scram(image, request))
    if result.error is not ErrorCode.NONE:
        raise CommandFailure(f"the user {user} cannot be created: {result.message} ({result.error.name})")
