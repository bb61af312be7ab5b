"""Log compaction: which log is cleaned when (the manager), and the cleaning itself (the cleaner)."""
