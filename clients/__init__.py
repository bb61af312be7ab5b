"""The native asyncio client: producer, consumer, admin (import them from `barnabas`)."""
