"""The estimators: names, citations and needs.

Their functions are in `tracecal.estimate.<family>`, one module per family. Rules pass a script the
part of this table that it needs as parameters, so a new line reruns only its family.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["baseline", "trace", "broader", "variant"]
# How an estimator is fitted that has a fit of its own; 'identity': its input is the probability.
# 'pooled' is that of every estimator without one on parts of answers.
OwnFit = Literal["identity", "signed", "mixture", "pooled"]
# The families whose scores follow from an answer's trace, without another table
OF_TRACE_ALONE = {"likelihood", "entropy", "trajectory", "trace"}
REQUIREMENTS = {"asked": "E", "samples": "S", "hidden": "H"}
# What a method assumes (paper, appendix C), as 'yes', 'partly' or 'no': with the trace of the decoded
# answer alone, then what each further need changes.
TRACE_ALONE = {"same": "yes", "single": "yes", "extra": "no", "semantic": "no", "calibrator": "no"}
ASSUMED = {
    "beams": {"single": "partly"},
    "asked": {"single": "partly"},
    "samples": {"single": "no", "extra": "yes"},
    "weights": {"semantic": "yes"},
    "labels": {"calibrator": "yes"},
}
# The row of the protocol comparison that methods with the same needs share.
SHARED_ROWS = {
    ("traces",): ("likelihood_entropy", "Likelihood / entropy"),
    ("beams",): ("beam", "Beam-based scores"),
}


@dataclass(frozen=True)
class Estimator:
    """One confidence estimator.

    `needs` names the artefacts that its score is computed from. `features` is empty for a scalar
    estimator, whose score is a column of `scores/`; a learned one has no such column, and
    `features` are the inputs of its fit: columns of `features/`, or `scores.<id>`. `fit` is null
    where it is fitted by the run's own method of calibration.
    """

    id: str
    label: str
    family: str
    role: Role
    citation: str
    needs: tuple[str, ...] = ("traces",)
    features: tuple[str, ...] = ()
    assumes: Mapping[str, str] = field(default_factory=dict)  # where `needs` do not imply it
    shown_as: str = ""
    fit: OwnFit | None = None

    @property
    def group(self) -> str:
        """The family under which tables and figures show it."""
        return self.shown_as or self.family

    @property
    def supervised(self) -> bool:
        """Whether it is trained on labelled rows of its own, those of role 'training'."""
        return "labels" in self.needs and not self.features

    @property
    def inputs(self) -> list[str]:
        """The inputs of the calibration protocol's fit, as `<folder>.<column>`."""
        columns = [name if "." in name else f"features.{name}" for name in self.features]
        return columns or [f"scores.{self.id}"]

    @property
    def requires(self) -> str:
        """What it needs beyond a decoded answer and its trace, in the letters of `broader_uq`.

        E extra inference, S samples, H hidden states, L labelled training, C calibration labels.
        """
        letters = [letter for need, letter in REQUIREMENTS.items() if need in self.needs]
        if "labels" in self.needs:
            letters.append("C" if self.features else "L")
        return "+".join(letters)

    @property
    def protocol(self) -> dict[str, str]:
        """What it assumes: by its needs, unless `assumes` says otherwise."""
        assumed = dict(TRACE_ALONE)
        for need in self.needs:
            assumed |= ASSUMED.get(need, {})
        return assumed | {**self.assumes}

    @property
    def built_on(self) -> list[str]:
        """The other estimators whose scores it is fitted on."""
        scores = [name for name in self.features if name.startswith("scores.")]
        return [name.removeprefix("scores.") for name in scores]


TRACE_PLUS_FEATURES = (
    "first3_entropy_conf",
    "mean_entropy_conf",
    "log_length",
    "entropy_slope",
    "decayed_entropy_conf_2",
    "decayed_entropy_conf_4",
    "decayed_surprisal_conf_2",
    "decayed_surprisal_conf_4",
)

# The eleven statistics of Entropy Sentinel.
ENTROPY_STATISTICS = (
    "mean_entropy",
    "entropy_deviation",
    "max_entropy",
    "entropy_q10",
    "entropy_q25",
    "entropy_q50",
    "entropy_q75",
    "entropy_q90",
    "entropy_skewness",
    "entropy_kurtosis",
    "entropy_sum",
)

OPERATORS = ("decayed_entropy", "window_entropy", "length_normalised_surprisal")
LIKELIHOOD = ("min_prob", "len_norm_logp", "low_prob_token_rate")
SEQUENCE_LIKELIHOODS = ("seq_logp", "len_norm_logp", "min_prob")
SCORED_LIKELIHOODS = tuple(f"scores.{name}" for name in SEQUENCE_LIKELIHOODS)
LOCAL_ENTROPY = ("decayed_entropy_conf_2", "decayed_entropy_conf_4")
LOCAL_SURPRISAL = ("decayed_surprisal_conf_2", "decayed_surprisal_conf_4")


def variant(id: str, label: str, *features: str, fit: OwnFit | None = None) -> Estimator:
    """A learned variant of TRACE."""
    needs = ("traces", "labels")
    return Estimator(id, label, "trace", "variant", "xu2026trace", needs, features, fit=fit)


def without(*removed: str) -> tuple[str, ...]:
    """TRACE+'s features without the `removed` ones."""
    return tuple(name for name in TRACE_PLUS_FEATURES if name not in removed)


ESTIMATORS = (
    Estimator("first_token_prob", "First-Token Prob", "likelihood", "baseline", "chen2026firsttoken"),
    Estimator("mean_prob", "MeanProb", "likelihood", "baseline", "flores2025improving"),
    Estimator("len_norm_logp", "Len-Norm LogP", "likelihood", "baseline", "bakman2024mars"),
    Estimator("seq_logp", "SeqLogP / Total NLL", "likelihood", "baseline", "aichberger2024rethinking"),
    Estimator("min_prob", "MinProb", "likelihood", "baseline", "manakul2023selfcheckgpt"),
    Estimator("mean_token_entropy", "Mean Token Entropy", "entropy", "baseline", "flores2025improving"),
    Estimator("max_token_entropy", "Max Token Entropy", "entropy", "baseline", "manakul2023selfcheckgpt"),
    Estimator("high_prob_token_rate", "High-Prob Token Rate", "likelihood", "baseline", "szymczyk2026monitoring"),
    Estimator("first_k_entropy", "First-k Entropy", "entropy", "baseline", "chen2026firsttoken"),
    Estimator("last_k_entropy", "Last-k Entropy", "entropy", "baseline", "li2026semantic"),
    Estimator("windowed_entropy", "Windowed Entropy", "trajectory", "baseline", "sriramanan2024llm"),
    Estimator("entropy_variance", "Entropy Variance", "trajectory", "baseline", "zhu2026edis"),
    Estimator("entropy_slope", "Entropy Slope", "trajectory", "baseline", "zhu2026edis"),
    Estimator("token_prob_slope", "Token-Prob Slope", "trajectory", "baseline", "shapiro2026halt"),
    Estimator("beam_ratio", "Beam-Ratio", "beam", "baseline", "flores2025improving", ("beams",)),
    Estimator("beam_tail_thinness", "Beam-TailThinness", "beam", "baseline", "flores2025improving", ("beams",)),
    Estimator("beam_entropy", "Beam Entropy", "beam", "baseline", "flores2025improving", ("beams",)),
    Estimator("token_sar", "TokenSAR", "token_sar", "baseline", "duan2024shifting", ("traces", "weights"), shown_as="semantic"),
    Estimator("mars", "MARS", "mars", "baseline", "bakman2024mars", ("traces", "weights"), shown_as="semantic"),
    Estimator("trace", "TRACE", "trace", "trace", "xu2026trace"),
    Estimator(
        "trace_plus", "TRACE+", "trace", "trace", "xu2026trace", ("traces", "labels"), TRACE_PLUS_FEATURES
    ),
    Estimator("semantic_entropy", "Semantic Entropy", "semantic_entropy", "broader", "kuhn2023semantic", ("samples",), assumes={"same": "no", "semantic": "yes"}, shown_as="sampling"),
    Estimator("selfcheckgpt", "SelfCheckGPT", "selfcheckgpt", "broader", "manakul2023selfcheckgpt", ("traces", "samples"), assumes={"semantic": "partly"}, shown_as="sampling"),
    Estimator("lars", "LARS", "lars", "broader", "yaldiz2025", ("traces", "labels"), assumes={"semantic": "yes"}, shown_as="supervised"),
    Estimator("internal_probe", "Internal-state probe", "internal_probe", "broader", "ji2024", ("hidden", "labels"), shown_as="supervised"),
    Estimator("p_true", "P(True)", "p_true", "broader", "kadavath2022language", ("asked",), shown_as="self-evaluation"),
    Estimator("verbalized", "Verbalized conf.", "verbalized", "broader", "tian2023just", ("asked",), assumes={"extra": "yes"}, shown_as="self-evaluation"),
    # Newer than the paper, on the same traces.
    Estimator("ces", "CES", "ces", "broader", "villani2026entropy", shown_as="entropy"),
    Estimator("entropy_sentinel", "Entropy Sentinel", "entropy", "broader", "buffa2026sentinel", ("traces", "labels"), ENTROPY_STATISTICS),
    # Paper, tables 3 to 5 and appendix E.4: ablations of TRACE.
    Estimator("operator_d", "Position-decayed entropy D", "trace", "variant", "xu2026trace"),
    Estimator("operator_m", "Local-window entropy M", "trace", "variant", "xu2026trace"),
    Estimator("operator_l", "Length-normalized surprisal L", "trace", "variant", "xu2026trace"),
    variant("trace_uncalibrated", "TRACE (raw)", "scores.trace", fit="identity"),
    variant("learned_dml", "Learned (D, M, L)", *OPERATORS),
    variant("trace_plus_with_likelihood", "TRACE+ + seq. likelihood", *TRACE_PLUS_FEATURES, *LIKELIHOOD),
    variant("trace_plus_without_local_entropy", "TRACE+ w/o local entropy", *without(*LOCAL_ENTROPY)),
    variant("trace_plus_without_local_surprisal", "TRACE+ w/o local surprisal", *without(*LOCAL_SURPRISAL)),
    variant("trace_plus_without_slope", "TRACE+ w/o trajectory slope", *without("entropy_slope")),
    variant("trace_plus_without_length", "TRACE+ w/o length", *without("log_length")),
    # Paper, table 6: semantic estimators with TRACE's operators, and TRACE+ with them.
    variant("mars_with_trace", "MARS + TRACE", "scores.mars", *OPERATORS),
    variant("token_sar_with_trace", "TokenSAR + TRACE", "scores.token_sar", *OPERATORS),
    variant("trace_plus_with_mars", "TRACE+ + MARS", *TRACE_PLUS_FEATURES, "scores.mars"),
    variant("trace_plus_with_token_sar", "TRACE+ + TokenSAR", *TRACE_PLUS_FEATURES, "scores.token_sar"),
    variant("likelihood_and_length", "Log-likelihood and length", "log_likelihood", "log_length"),
    variant("entropy_local_only", "Entropy-local only", *LOCAL_ENTROPY),
    variant("likelihood_local_only", "Likelihood-local only", *LOCAL_SURPRISAL),
    # For few labels; `tracecal.calibrate.few_labels` has the fits.
    variant("trace_plus_signed", "TRACE+, signed", *TRACE_PLUS_FEATURES, fit="signed"),
    variant("trace_plus_signed_with_likelihood", "TRACE+ + likelihoods, signed", *TRACE_PLUS_FEATURES, *SCORED_LIKELIHOODS, fit="signed"),
    variant("stack", "Stack of seven", *TRACE_PLUS_FEATURES, *SCORED_LIKELIHOODS, "scores.trace", "scores.windowed_entropy", "scores.mean_token_entropy", fit="mixture"),
)  # fmt: skip

IDS = tuple(estimator.id for estimator in ESTIMATORS)
# The estimators in the paper's analyses: one of each kind, then TRACE.
REPRESENTATIVE = ("seq_logp", "windowed_entropy", "mars", "trace", "trace_plus")
FAMILIES = tuple(dict.fromkeys(estimator.family for estimator in ESTIMATORS))


def of_trace_alone(estimator: Estimator) -> bool:
    """Whether an estimator's inputs follow from an answer's trace, without another table."""
    families = {e.family for e in ESTIMATORS if e.id in estimator.built_on}
    return {estimator.family, *families} <= OF_TRACE_ALONE


def protocol_rows(chosen: Iterable[Estimator]) -> list[dict[str, str]]:
    """The methods of the protocol comparison in the registry's order; some share a row."""
    rows: dict[str, dict[str, str]] = {}
    for estimator in chosen:
        if estimator.role == "variant":
            continue
        method, label = estimator.id, estimator.label
        if estimator.role != "trace" and estimator.id in IDS:
            method, label = SHARED_ROWS.get(estimator.needs, (method, label))
        row = {"method": method, "label": label, "role": estimator.role}
        rows.setdefault(method, row | estimator.protocol)
    return list(rows.values())


def entries(estimators: Iterable[Estimator]) -> list[dict[str, str]]:
    """Estimators as tables and figures are given them."""
    return [
        {"id": e.id, "label": e.label, "family": e.group, "role": e.role, "citation": e.citation}
        for e in estimators
    ]
