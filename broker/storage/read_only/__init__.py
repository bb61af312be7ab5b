"""Logs of a directory that is only read: recovered in memory, without a byte written, a lock taken or a file made."""

from __future__ import annotations
