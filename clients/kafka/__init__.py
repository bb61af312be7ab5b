"""A connection by Kafka's protocol, for the Spark sink."""
