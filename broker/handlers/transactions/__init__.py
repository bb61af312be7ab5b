"""Handlers of transactions; one module for each API, as in `protocol/messages/transactions`."""
