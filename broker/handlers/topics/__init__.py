"""Handlers of the APIs about topics and partitions: metadata, creation, deletion, growth, log directories.

The API table alone imports them. Changes of metadata go through MetadataChanges.
"""
