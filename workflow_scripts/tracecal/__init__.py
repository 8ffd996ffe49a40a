import os
import time
from importlib import import_module

STARTED = time.monotonic()

if "TRACECAL_JOB" in os.environ:  # in a process of the workflow, before all other modules
    import_module("tracecal.jobs.process")
