"""AlterUserScramCredentials (key 51): CLUSTER_AUTHORIZATION_FAILED without ALTER on the cluster.

Then one result per user, with the checks of broker/metadata/security/scram.py. A change is durable before it is
answered, and counts for the next login; connections that are open stay open.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.broker.metadata.security.scram import plan_alter_scram
from barnabas.broker.printable import printable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe

logger = logging.getLogger(__name__)


class AlterUserScramCredentialsHandler:
    """Serves AlterUserScramCredentials."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(
        self, session: Session, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """Answer one AlterUserScramCredentials request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.ALTER, ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
        results = await self._changes.change(lambda image: plan_alter_scram(image, request))
        author = printable(str(session.principal))
        deleted = {deletion.name for deletion in request.deletions}
        for result in results:
            if result.error is ErrorCode.NONE:
                change = "deleted" if result.user in deleted else "set"
                user = printable(result.user)
                logger.info("SCRAM credential of user %s %s by %s (%s)", user, change, session, author)
                if change == "set" and not result.user.isascii():
                    logger.warning("user %s cannot log in with SCRAM: user names in its messages are ASCII", user)
            else:
                self._probe.count_error(result.error.name.lower())
        return AlterUserScramCredentialsResponse(results=results)
