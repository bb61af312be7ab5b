"""Messages about ACLs, users, tokens, and SASL.

resources   resource types, operations, pattern types and permissions, with Kafka's codes
sasl        SaslHandshake and SaslAuthenticate
"""
