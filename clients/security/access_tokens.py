"""OAuth access tokens: from a file that another program renews, or from an identity provider by client credentials.

Blocks: call it on a thread. Source: Kafka's FileJwtRetriever and HttpJwtRetriever.
"""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlencode, urlsplit

from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.settings import OAuthClient

MAX_RESPONSE_BYTES: Final = 256 * 1024
TIMEOUT_SECONDS: Final = 10.0


def access_token(client: OAuthClient) -> str:
    """Return a token. Raises AuthenticationError, which names the file or the endpoint."""
    parts = urlsplit(client.url)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        try:
            return path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a token"
            raise AuthenticationError(f"the OAuth token cannot be read from {path}: {reason}") from error
    return _token_of(_request(client), client.url)


def _request(client: OAuthClient) -> bytes:
    assert client.client_secret is not None, "an https: endpoint has a client secret"
    fields = {"grant_type": "client_credentials"} | ({} if client.scope is None else {"scope": client.scope})
    credentials = f"{client.client_id}:{client.client_secret.reveal()}"
    request = urllib.request.Request(
        client.url,
        urlencode(fields).encode(),
        {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            body: bytes = response.read(MAX_RESPONSE_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            raise AuthenticationError(
                f"{client.url} refused an OAuth token with status {error.code}: check the client id and its secret"
            ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise AuthenticationError(f"no OAuth token from {client.url}: {reason}") from error
    return body


def _token_of(body: bytes, url: str) -> str:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    token = document.get("access_token") or document.get("id_token") if isinstance(document, dict) else None
    if not isinstance(token, str):
        raise AuthenticationError(f"{url} answered without an access_token")
    return token.strip()
