"""AlterReplicaLogDirs (34)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.log_dirs import AlterReplicaLogDirsRequest

decode_request, encode_response, encode_error = served(AlterReplicaLogDirsRequest)
