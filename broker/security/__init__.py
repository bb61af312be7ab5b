"""Who a client is: principals and authentication.

principal   the identity that ACLs, quotas and tokens refer to
access      what a session asks of the authorizer
"""
