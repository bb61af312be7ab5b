"""Kafka codecs of the APIs that read and write records: Produce, Fetch, offsets, DeleteRecords, producer ids.

One module per API, named in `protocol/kafka/apis.py` and loaded at the first request. Produce and Fetch are decoded
and encoded by hand, because they carry the records.
"""
