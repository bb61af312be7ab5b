"""Neutral requests and responses of transactions.

One module for each API, as in the folders of the same name in `protocol/kafka` and `broker/handlers`.
"""
