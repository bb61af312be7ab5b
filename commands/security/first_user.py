"""The first SCRAM user of a log directory, written before the broker's first start, as `kafka-storage format` does."""

from __future__ import annotations

import secrets
from pathlib import Path

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.security.scram import plan_alter_scram
from barnabas.broker.metadata.store import open_metadata
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log_manager import LogManager
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.commands.failures import CommandFailure
from barnabas.config import load
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest, ScramUpsertion
from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SCRAM_MECHANISMS, salted_password

_SALT_BYTES = 32


def write_first_user(server_properties: Path, user: str, password: str, mechanism: str) -> None:
    """Create the log directory of a configuration with one SCRAM user. Raises CommandFailure, ConfigError."""
    kind = SCRAM_MECHANISMS[mechanism]
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = salted_password(kind, password, salt, MIN_ITERATIONS)
    request = AlterUserScramCredentialsRequest(
        upsertions=[ScramUpsertion(user, kind.code, MIN_ITERATIONS, salt, salted)]
    )
    manager = LogManager(load(config_file=server_properties))
    try:
        manager.open_directories()
        store = open_metadata(load(config_file=server_properties), manager, SystemClock())
        (result,) = store.change(lambda image: plan_alter_scram(image, request))
        if result.error is not ErrorCode.NONE:
            raise CommandFailure(f"the user {user} cannot be created: {result.message} ({result.error.name})")
    except (MetadataError, StorageError, BrokerError) as error:
        raise CommandFailure(str(error)) from error
    finally:
        manager.shutdown()
