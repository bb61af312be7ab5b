"""The share consumer: a member of a share group (KIP-932), whose records are acknowledged one by one.

The public class is `barnabas.ShareConsumer`. It speaks Kafka's dialect, so it works with Apache Kafka, too.
"""
