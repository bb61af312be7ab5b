"""Neutral requests and responses of the APIs about groups: membership and committed offsets.

Plain values: dialects decode to them and encode from them, and handlers use nothing else.
"""
