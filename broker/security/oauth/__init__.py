"""Validation of the tokens of OAUTHBEARER, by PyJWT.

keys        the signing keys of an identity provider, from a file or by HTTPS
validator   signature and claims of a token
"""
