"""The properties (Kafka's names, types, defaults, validators, docs), the loader, and the shipped config files."""
