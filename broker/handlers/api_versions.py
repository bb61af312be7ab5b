"""ApiVersions (key 18; hello in the native dialect): what is served here, and by whom. Never fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.protocol.messages.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.native.codec import NATIVE_APIS, VERSION

if TYPE_CHECKING:
    from barnabas.broker.session import Session


class ApiVersionsHandler:
    """Serves ApiVersions: the same answer for everybody, so it is made once."""

    def __init__(self, cluster_id: str, node_id: int, max_frame_bytes: int) -> None:
        self._response = ApiVersionsResponse(
            server="barnabas",
            server_version=__version__,
            cluster_id=cluster_id,
            node_id=node_id,
            apis=[ApiVersionRange(int(api), VERSION, VERSION) for api in sorted(NATIVE_APIS)],
            max_frame_bytes=max_frame_bytes,
        )

    def __call__(self, session: Session, request: ApiVersionsRequest) -> ApiVersionsResponse:
        """The answer to one request; the contract is at the top of the file."""
        return self._response
