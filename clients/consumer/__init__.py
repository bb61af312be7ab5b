"""The consumer: prefetching, positions, subscriptions, offset resets, commits.

The public class is `barnabas.Consumer`; its group membership is in `clients/membership`.
"""
