"""Kafka codecs of the APIs about security: SASL, ACLs, users, quotas, delegation tokens.

One module per API, named in `protocol/kafka/apis.py` and loaded at the first request.
"""
