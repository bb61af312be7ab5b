"""The cleaner's properties as one immutable value, read at the start of each round. Source: Kafka CleanerConfig."""

from __future__ import annotations

import logging
from typing import NamedTuple

from barnabas.config.broker_config import BrokerConfig

MAX_OFFSET_MAP_BYTES = 2**31 - 1

logger = logging.getLogger(__name__)


class CleanerConfig(NamedTuple):
    """Cleaner properties; sizes are per thread, that is, Kafka's properties divided by log.cleaner.threads."""

    threads: int
    offset_map_bytes: int
    load_factor: float
    io_buffer_bytes: int
    """Size of the read buffer and of the write buffer."""
    bytes_per_second: float
    backoff_seconds: float

    @classmethod
    def of(cls, config: BrokerConfig) -> CleanerConfig:
        """Derive the value from a broker's configuration, which ensures more than 1 MiB of map per thread."""
        threads = config.get_int("log.cleaner.threads")
        share = config.get_int("log.cleaner.dedupe.buffer.size") // threads
        if share > MAX_OFFSET_MAP_BYTES:
            logger.warning(
                "a cleaner thread uses 2 GiB of its share of log.cleaner.dedupe.buffer.size: share=%s", share
            )
        return cls(
            threads=threads,
            offset_map_bytes=min(share, MAX_OFFSET_MAP_BYTES),
            load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
            io_buffer_bytes=config.get_int("log.cleaner.io.buffer.size") // threads // 2,
            bytes_per_second=config.get_float("log.cleaner.io.max.bytes.per.second"),
            backoff_seconds=config.get_int("log.cleaner.backoff.ms") / 1000,
        )
