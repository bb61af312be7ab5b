"""Self-contained HTML pages with SVG charts, for the jobs `stats` and `whatif`."""
