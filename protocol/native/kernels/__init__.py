"""Compiled parsing and encoding of produce and fetch in their plain forms, beside the Python codecs, the reference."""
