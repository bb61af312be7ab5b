"""The Kafka dialect: Kafka's own messages, by kio's entities. No sockets, no files, no handlers: bytes only."""
