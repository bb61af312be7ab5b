"""`barnabas acl`: access rules."""
