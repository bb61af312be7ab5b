"""What the console knows of a cluster: requests to its brokers, and observations repeated in the background."""
