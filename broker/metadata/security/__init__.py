"""Users, ACLs, quotas and delegation tokens in the metadata image, and plans that change them.

image      the part of the image
builder    application of records
snapshot   records of a snapshot
acls, scram, quotas, tokens   plans
"""
