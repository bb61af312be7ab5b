from types import NotImplementedType

from barnabas.broker.storage.files.file_records import FileSlice
from barnabas.broker.storage.log.core import LogCore

def read(
    core: LogCore, offset: int, max_bytes: int, upper_bound: int, at_least_one_batch: bool, committed_only: bool
) -> FileSlice | NotImplementedType | None: ...
