"""What holds for a whole process that the workflow started; imported before all else."""

import gc

from tracecal.jobs.sources import load_by_content

# Loading Transformers creates hundreds of thousands of objects, which stay: collecting garbage at
# every 700 takes a seventh of a short job's time. `job` restores Python's own setting.
gc.set_threshold(100_000, 50, 1000)
load_by_content()
