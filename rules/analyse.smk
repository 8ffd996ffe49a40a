# The paper's analyses: one module of the room `analyse` and one rule each.
# reads   metrics.parquet, predictions/, scores/, features/, labels/, splits/, tasks/, operators/
# writes  analyses/<name>.parquet
