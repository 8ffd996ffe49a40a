"""Tables as LaTeX, HTML and CSV, and the report's pages."""
