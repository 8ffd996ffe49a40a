import gc

# Loading Transformers makes hundreds of thousands of objects, which stay; to look through them for
# garbage after every 700 takes a seventh of a short job's time. `job` sets it back.
gc.set_threshold(100_000, 50, 1000)
