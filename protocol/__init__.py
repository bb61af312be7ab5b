"""Bytes only: record batches, compression, framing, the neutral messages and the dialects. No sockets, no files."""
