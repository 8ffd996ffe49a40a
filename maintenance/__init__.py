"""Scripts of maintainers: pages, schemas and pictures from the code and from finished runs."""
