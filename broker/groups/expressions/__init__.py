"""Topic expressions of members (RE2) and the hash of a group's subscribed topics."""
