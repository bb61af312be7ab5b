"""The property tables: every broker, topic and group property with its name, type, default, validator and text.

One table per scope, and `unserved` for the Kafka properties that are accepted and have no effect. Only `config`
itself reads them; everybody else asks a BrokerConfig, TopicConfig or LogConfig.
"""
