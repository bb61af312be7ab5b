"""Kafka codecs of the APIs about groups: coordinators, membership in both protocols, committed offsets.

One module per API, named in `protocol/kafka/apis.py` and loaded at the first request.
"""
