"""What people look at or talk to: explorer, label page, report and proxy."""
