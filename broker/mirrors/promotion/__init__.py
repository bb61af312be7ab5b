"""Promotion of mirrored topics: open transactions are settled, and the topics become writable."""
