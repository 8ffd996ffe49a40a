"""What pages and pictures share: their frame, style and drawing."""
