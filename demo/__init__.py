"""The demo: real data sent through a broker that is restarted in between; every record is compared. See README.md."""
