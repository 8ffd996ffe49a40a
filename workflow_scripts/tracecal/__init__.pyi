# What `__init__.py` loads when it is first used, for type checkers and editors.
from tracecal.answers.reading import Reading as Reading
from tracecal.answers.sources import read_answers as read_answers
from tracecal.api.cascade import cascade as cascade
from tracecal.api.labels import LabelSearch as LabelSearch
from tracecal.api.labels import agree as agree
from tracecal.api.labels import explore as explore
from tracecal.api.labels import pick as pick
from tracecal.api.labels import plan as plan
from tracecal.calibrator.calibrator import Calibrator as Calibrator
from tracecal.calibrator.calibrator import calibrate as calibrate
from tracecal.capture.replay import replay as replay
from tracecal.errors import InputError as InputError
from tracecal.features.traces import trace_features as trace_features
from tracecal.features.traces import trace_score as trace_score
from tracecal.serving.monitors import Monitors as Monitors

__version__: str
