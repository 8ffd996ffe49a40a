"""The proxy that adds confidence to the answers of an OpenAI-compatible server."""
