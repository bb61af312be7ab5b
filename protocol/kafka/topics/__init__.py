"""Kafka codecs of the APIs about topics and partitions: metadata, creation, deletion, growth, log directories.

One module per API, named in `protocol/kafka/apis.py` and loaded at the first request.
"""
