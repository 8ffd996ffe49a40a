"""The explorer: a page that shows answers with their traces and scores."""
