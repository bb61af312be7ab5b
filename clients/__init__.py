"""The asyncio client: producer, consumer and admin (import them from `barnabas`).

Also `testing` and `pytest_plugin`, which start a real broker for tests; `config` and `errors` are shared by all.
"""
