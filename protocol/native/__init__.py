"""The native dialect: msgpack headers followed by record batches. docs/native.md is its specification."""
