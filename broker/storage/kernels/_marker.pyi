"""Types of the compiled append of end markers."""

from barnabas.broker.storage.kernels._append import AppendKernel
from barnabas.broker.storage.log.append import AppendResult, TransactionEnd

def append_commit(
    log: AppendKernel,
    end: TransactionEnd,
    marker_batch: bytearray,
    leader_epoch: int,
    timestamp: int,
    now_ms: int,
    log_append_time: bool,
) -> AppendResult | None: ...
