"""What all logs of one broker share: clocks, background tasks, and the handling of failed log directories.

`services.StorageServices` carries them to every part of the log engine; tests pass their own.
"""
