"""Records of `__share_group_state`: the states of share partitions."""
