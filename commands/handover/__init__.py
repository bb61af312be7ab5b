"""`barnabas handover`: make a directory ready for Apache Kafka and say how to start it there."""
