"""Users, ACLs, quotas and delegation tokens in the metadata image.

image      the part of the image
builder    application of records
snapshot   records of a snapshot
"""
