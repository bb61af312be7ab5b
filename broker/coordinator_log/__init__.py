"""What the logs of the group coordinator and of the transaction coordinator have in common.

`log.CoordinatorLog` is the only writer of `__consumer_offsets` or of `__transaction_state`. It knows nothing of their
records: its user encodes them, and replays them once they are appended.
"""
