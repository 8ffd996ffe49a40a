"""The proxy: it passes requests on to a server, and adds the confidence of each answer."""
