# What `__init__.py` loads when it is first used, for type checkers and editors.
from tracecal.answers.answers import read_answers as read_answers
from tracecal.answers.reading import Reading as Reading
from tracecal.calibrator.calibrator import Calibrator as Calibrator
from tracecal.calibrator.calibrator import calibrate as calibrate
from tracecal.capture.replay import replay as replay
from tracecal.errors import InputError as InputError
from tracecal.estimators.trace_features import trace_features as trace_features
from tracecal.estimators.trace_features import trace_score as trace_score
from tracecal.explorer.explore import explore as explore
from tracecal.explorer.reading_summary import explain_reading as explain_reading
from tracecal.labelling.agree import agree as agree
from tracecal.labelling.draw import pick as pick
from tracecal.labelling.label_plan import plan as plan
from tracecal.labelling.search import LabelSearch as LabelSearch
from tracecal.monitoring.check import check as check
from tracecal.monitoring.monitors import Monitors as Monitors

__version__: str
MODULES: dict[str, str]
