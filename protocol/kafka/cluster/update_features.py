"""UpdateFeatures (57)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.update_features import UpdateFeaturesRequest

decode_request, encode_response, encode_error = served(UpdateFeaturesRequest)
