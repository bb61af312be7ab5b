"""Message formats 0 and 1, which brokers before Kafka 0.11 wrote: reading them and converting them to version 2.

Storage walks them like batches; Fetch converts them, so that clients need to know one format only. Kafka itself never
converts up at a fetch: 3.9 and 4.3 send formats 0 and 1 as stored. Nothing writes these formats.
"""
