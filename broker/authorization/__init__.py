"""Authorization by ACLs, with the rules of Apache Kafka's StandardAuthorizer.

index          the ACLs of an image, by resource type and name
decisions      the decision about an action
rules          which ACL applies to an action, and what it implies
configured     the authorizer that a configuration asks for
authorizer     decides; binds sessions to their access; follows the metadata image
cached_access  cached decisions about one principal at one host
audit          denials, and grants on request, as JSON lines
audit_shares   how many lines a second each principal may write
audit_file     the file of the audit log: bounded in size, written on a thread of its own
explain        the ACLs that were considered for a decision, and what each of them did
"""
