"""DescribeLogDirs (35), versions 1-4: the logs in the log directories of one broker."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

DESCRIBE_LOG_DIRS: Final = ClientApi(ApiKey.DESCRIBE_LOG_DIRS, 1, 4, DescribeLogDirsRequest, DescribeLogDirsResponse)
