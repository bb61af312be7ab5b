"""Codecs of transactions, one module for each API: InitProducerId is in `data`, FindCoordinator in `groups`."""
