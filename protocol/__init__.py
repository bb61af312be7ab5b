"""Bytes only: record batches, compression, framing, neutral messages and dialects. No sockets, no files."""
