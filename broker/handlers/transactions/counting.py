"""Errors in the coordinator's answers, for barnabas_request_errors_total."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.probes import ApiProbe


class _HasError(Protocol):
    error: ErrorCode


R = TypeVar("R", bound=_HasError)


def counted(answer: R | Deferred[R], probe: ApiProbe) -> R | Deferred[R]:
    """Return the answer, without a Deferred if it is there already. Its error is counted."""

    def note(response: R) -> R:
        if response.error is not ErrorCode.NONE:
            probe.count_error(response.error.name.lower())
        return response

    if not isinstance(answer, Deferred):
        return note(answer)
    if answer.done:
        return note(answer.value)
    later: Deferred[R] = Deferred(answer.cancel)
    answer.then(lambda response: later.resolve(note(response)))
    return later
