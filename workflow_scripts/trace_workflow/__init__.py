import time

STARTED = time.monotonic()
