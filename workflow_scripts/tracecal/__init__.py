import gc
import time

STARTED = time.monotonic()

# Loading Transformers creates hundreds of thousands of objects, which stay: collecting garbage at
# every 700 takes a seventh of a short job's time. `job` restores Python's own setting.
gc.set_threshold(100_000, 50, 1000)
