"""Handlers of the APIs about the cluster itself: versions, configs, the quorum, quotas, users.

The API table alone imports them.
"""
