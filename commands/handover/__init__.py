"""`barnabas handover`: prepares log directories for Apache Kafka."""
