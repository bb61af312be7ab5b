"""Records of `__transaction_state`, the log of Kafka's transaction coordinator."""
