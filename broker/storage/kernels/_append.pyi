"""Types of the compiled append."""

from barnabas.broker.storage.log.append import AppendResult
from barnabas.broker.storage.log.core import LogCore
from barnabas.config.log_config import LogConfig

class AppendKernel:
    """Appends to one log; None: unusual, nothing was changed, and the Python path appends or refuses the batch."""

    def __init__(self, core: LogCore) -> None: ...
    def use_config(self, config: LogConfig) -> None: ...
    def append_as_leader(
        self, records: memoryview, leader_epoch: int, in_transaction: bool, now_ms: int
    ) -> AppendResult | None: ...
    def append_trusted_batch(self, records: memoryview, leader_epoch: int, now_ms: int) -> AppendResult | None: ...
