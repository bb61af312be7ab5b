"""Kafka codecs of the APIs about the cluster itself: versions, configs, the quorum, quotas, users.

One module per API, named in `protocol/kafka/apis.py` and loaded at the first request.
"""
