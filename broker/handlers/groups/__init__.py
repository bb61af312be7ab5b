"""Handlers of the APIs about groups: coordinators, membership in both protocols, committed offsets.

The API table alone imports them. They translate between requests and the group coordinator.
"""
