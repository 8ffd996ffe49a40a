"""The proxy that adds confidence to a server's answers: `tracecal serve`."""
