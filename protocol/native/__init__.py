"""The native dialect: msgpack headers followed by record batches. docs/protocol.md is its specification."""
