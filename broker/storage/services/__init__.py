"""Services shared by all logs of a broker: the clock, background tasks, and failed log directories.

`services.StorageServices` passes them to every part of the log engine; tests inject their own.
"""
