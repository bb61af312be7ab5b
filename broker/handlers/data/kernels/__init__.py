"""Compiled handlers of the plain requests for records, beside the Python handlers, which serve all others."""
