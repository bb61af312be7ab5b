"""The transaction coordinator: transactional ids, their transactions, and the log `__transaction_state`.

`transitions` is the state machine, without I/O and clock. `log` appends and replays its states, `markers` ends
transactions in partitions, `coordinator` serves the requests.
"""
