"""`barnabas standby`: run a standby, and talk to the one that runs on this machine."""
