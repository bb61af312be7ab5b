"""Handlers of the APIs about security: SASL, ACLs, users, quotas, delegation tokens.

The API table alone imports them.
"""
