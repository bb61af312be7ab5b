"""RenewDelegationToken (39), versions 1-2."""

from __future__ import annotations

from barnabas.protocol.kafka.security.token_fields import CHANGE_REQUEST, CHANGE_RESPONSE, encode_change_error

REQUEST = CHANGE_REQUEST
RESPONSE = CHANGE_RESPONSE

decode_request = REQUEST.read
encode_response = RESPONSE.write
encode_error = encode_change_error
