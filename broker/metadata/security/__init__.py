"""Users, ACLs, quotas and delegation tokens in the metadata image.

image   the part of the image
"""
