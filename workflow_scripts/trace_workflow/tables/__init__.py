"""What each table shows, its notes, its LaTeX, HTML and CSV, and the findings in sentences."""
