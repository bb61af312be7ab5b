"""ExplainGroup (10002), an API of Barnabas."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.explain_group import ExplainGroupRequest

decode_request, encode_response, encode_error = served(ExplainGroupRequest)
