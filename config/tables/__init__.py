"""The property tables: every broker, topic and group property with its name, type, default, validator and text.

One table per scope, and `unserved` for the Kafka properties that are accepted without effect. Only `config` reads the
tables; other packages use a BrokerConfig or a LogConfig.
"""
