"""The demo's world: tasks made from public facts, and tiny models and encoders trained on them."""
