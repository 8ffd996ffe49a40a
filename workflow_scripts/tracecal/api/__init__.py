"""What `import tracecal` offers: the commands as functions and classes."""
