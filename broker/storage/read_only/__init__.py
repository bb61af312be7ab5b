"""Logs of log directories that are only read: recovered in memory; no byte is written, no lock taken, no file created.

`log_manager.ReadOnlyLogManager` is for the broker with `read.only=true` and for the doctor; `refusal.refuse_change` is
the error of every change there.
"""

from __future__ import annotations
