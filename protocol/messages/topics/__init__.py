"""Neutral requests and responses of the APIs about topics and partitions.

Plain values: dialects decode to them and encode from them, and handlers use only them.
"""
