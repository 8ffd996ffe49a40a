"""What one answer costs: a trace, and a response of 30 tokens with 20 alternatives.

Scored by the recommended fit; the plain recipe takes the mean and the least log-probability.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.before import compared
from benchmarks.serve import answer
from benchmarks.timing import Row
from support.labelled_answers import stored

TIMES = 200
TOKENS, ALTERNATIVES = 30, 20
TRACE = """
import tracecal
calibrator = tracecal.Calibrator.load(sys.argv[1])
s, h = np.linspace(0.01, 2, 30), np.linspace(0.1, 3, 30)
work = lambda: [calibrator.score_trace(s, h).probability]
"""
RESPONSE = """
import tracecal
calibrator = tracecal.Calibrator.load(sys.argv[1])
response = json.load(open(sys.argv[2]))
def work():
    scored = calibrator.score_response(response)
    return [scored.probability, scored.lower, scored.upper]
"""
PLAIN = """
response = json.load(open(sys.argv[2]))
def work():
    logprobs = [token["logprob"] for token in response["choices"][0]["logprobs"]["content"]]
    return [np.mean(logprobs), min(logprobs)]
"""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        calibrator, response = Path(name) / "C.json", Path(name) / "response.json"
        calibrator.write_text(json.dumps(stored()), encoding="utf-8")
        response.write_text(json.dumps(answer(TOKENS, ALTERNATIVES)), encoding="utf-8")
        for work, code in (("a trace", TRACE), ("a response", RESPONSE)):
            yield next(compared(work, code, PLAIN, calibrator, response, times=TIMES))
