"""Log compaction: choosing the log to clean (`choosing`) and the threads that do it; `rewriting` cleans one log.

`log_manager` owns the CleanerManager; code that truncates, moves or deletes logs uses it as `pausing.CleaningControl`.
"""
