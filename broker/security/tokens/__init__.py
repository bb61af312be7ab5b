"""Delegation tokens (KIP-48): passwords with an end, which a client creates for its workers.

passwords   the HMAC of a token, from the broker's secret
logins      login with a token by SCRAM
lifetimes   creation, renewal and expiration, by Kafka's rules
sweep       deletion of expired tokens
"""
