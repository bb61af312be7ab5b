"""The property tables: every broker, topic and group property with its name, type, default, validator and text.

One table per scope, and two of the Kafka properties that have no effect: `unserved` has the names that are accepted,
`kafka_properties` what Kafka 4.3 says of them. Only `config` reads the
tables; other packages use a BrokerConfig or a LogConfig.
"""
