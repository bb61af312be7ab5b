"""Refusals that tell a client nothing: a code that says little, in an answer of Kafka's that has no message.

The broker's log is the only place where the reason can be read.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import Event
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.wire.fields import has_message

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.repeated_warnings import RepeatedWarnings

LONGEST: Final = 1000
"""Characters of a reason in the log: it may quote a name and goes on behind it."""

logger = logging.getLogger(__name__)

_VAGUE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


def log_unsaid(warnings: RepeatedWarnings, session: Session, api: int, error: BrokerError, request: Any = None) -> None:
    """Log why a client is refused, if its answer does not say so. `request`: the one that is refused as a whole."""
    if error.code not in _VAGUE:
        return
    if error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:  # many clients do not show the message of that
        answer = getattr(request, "answer_type", None)
        if request is not None and (answer is None or has_message(answer, request.version)):
            return
    event = Event(session.host, f"a request was refused with {error.code.name}")
    text, reason = "a request of api %d from %s is refused: %s", printable(str(error), LONGEST)
    warnings.warn(logger, event, text, api, session, reason, distinct=f"{api} {reason}")
