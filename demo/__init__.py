"""The demo: real input through a real broker, a restart in the middle, and every record compared. See README.md."""
