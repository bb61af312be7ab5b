"""Neutral requests and responses of the APIs about the cluster itself: versions, configs, the quorum.

Plain values: dialects decode to them and encode from them, and handlers use only them.
"""
