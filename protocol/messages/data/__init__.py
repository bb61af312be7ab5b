"""Neutral requests and responses of the APIs that read and write records.

Plain values: dialects decode to them and encode from them, and handlers use only them.
"""
