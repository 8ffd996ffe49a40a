"""What each table shows: its rows, columns, title and notes."""
