"""The first SCRAM user of a log directory, written before the broker's first start, as `kafka-storage format` does."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.metadata.security.scram import plan_alter_scram
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, change_stored
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS
from barnabas.protocol.sasl.scram_upsertions import scram_upsertion


def write_first_user(log_dir: Path, user: str, password: str, mechanism: str) -> None:
    """Create a log directory with one SCRAM user. Raises CommandFailure."""
    upsertion = scram_upsertion(user, SCRAM_MECHANISMS[mechanism], password)
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
    (result,) = change_stored(Directories((log_dir,), None), lambda image: plan_alter_scram(image, request))
    if result.error is not ErrorCode.NONE:
        raise CommandFailure(f"the user {user} cannot be created: {result.message} ({result.error.name})")
