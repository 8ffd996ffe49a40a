"""The demo data: tasks made from public facts, and small models and encoders trained on them."""
