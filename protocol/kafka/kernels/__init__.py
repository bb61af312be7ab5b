"""Compiled parsing and encoding of the hot messages in their plain forms, beside the Python codecs, the reference."""
