"""The sink's transactions by Kafka's protocol: librdkafka writes the rows, the driver ends the transactions."""
