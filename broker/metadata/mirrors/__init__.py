"""Mirrors in the metadata: their definitions and topics as part of the image, and plans of changes."""
