"""The Kafka dialect: Kafka's own messages, by field tables. No sockets, no files, no handlers: bytes only."""
