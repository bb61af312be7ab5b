"""The native dialect: msgpack headers with the record batches behind them. docs/protocol.md is its specification."""
