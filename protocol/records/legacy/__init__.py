"""Message formats 0 and 1, which brokers before Kafka 0.11 wrote: reading them and converting them to version 2.

Storage walks them like batches; Fetch converts them before a client sees them. Nothing writes these formats.
"""
