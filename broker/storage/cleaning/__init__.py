"""Log compaction: choosing the log to clean (`choosing`), and cleaning it (`cleaner`).

`log_manager` owns the CleanerManager; code that truncates, moves or deletes logs uses it as `pausing.CleaningControl`.
"""
