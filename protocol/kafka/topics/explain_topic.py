"""ExplainTopic (10004), an API of Barnabas."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicRequest

decode_request, encode_response, encode_error = served(ExplainTopicRequest)
