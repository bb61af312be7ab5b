"""Messages about ACLs, users, tokens, and SASL.

acls               ACLs, filters, and the requests about them
client_quotas      DescribeClientQuotas and AlterClientQuotas
delegation_tokens  the requests about delegation tokens
resources          resource types, operations, pattern types and permissions, with Kafka's codes
sasl               SaslHandshake and SaslAuthenticate
scram_credentials  DescribeUserScramCredentials and AlterUserScramCredentials
"""
