"""The systems that are measured: Barnabas and Apache Kafka."""
