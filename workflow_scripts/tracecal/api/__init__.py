"""What people import: the commands of `tracecal` as functions and classes, by the same names."""
