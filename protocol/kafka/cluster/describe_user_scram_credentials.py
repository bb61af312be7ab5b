"""DescribeUserScramCredentials (50)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.scram_credentials import DescribeUserScramCredentialsRequest

decode_request, encode_response, encode_error = served(DescribeUserScramCredentialsRequest)
