"""The topics of a streams application: which internal topics it needs, their partition counts, and its tasks.

Pure functions from a topology and the cluster's topics.
"""
