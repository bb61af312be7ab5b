"""HTML pages that stand alone: SVG charts and the page around them, for the jobs `stats` and `whatif`."""
