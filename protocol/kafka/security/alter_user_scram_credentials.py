"""AlterUserScramCredentials (51)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest

decode_request, encode_response, encode_error = served(AlterUserScramCredentialsRequest)
