"""The configuration: one clear sentence for whatever is wrong with it."""

import copy
from pathlib import Path

import pytest
import yaml

from trace_workflow.config.config import load_config
from trace_workflow.config.run import load_run, load_tasks
from tracecal.errors import InputError
from tracecal.estimators.registry import IDS
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
SMOKE = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
MODEL = SMOKE["models"][0]


def changed(**changes):
    return copy.deepcopy(SMOKE) | changes


@pytest.mark.parametrize("name", ["config", "smoke", "example", "paper"])
def test_the_shipped_configurations_are_valid(name):
    config = load_config(yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()), name)
    assert load_tasks(config, ROOT).keys() == {task.slug for task in config.tasks}
    assert config.study.pairs()


WRONG = {
    "unknown key": (
        {"modles": []},
        r"c: unknown key 'modles' \(did you mean 'models'\?\); allowed: run, seed, models",
    ),
    "unknown nested key": (
        {"splits": {"cuont": 3}},
        r"c: splits: unknown key 'cuont'.*allowed: count, calibration_share",
    ),
    "wrong type": (
        {"models": [MODEL | {"batch_size": "many"}]},
        r"c: models\[0\]\.batch_size: .*integer.*not 'many'",
    ),
    "a model of the main study twice": (
        {"study": {"main": {"models": ["demo-small", "demo-small"], "tasks": ["extractive"]}}},
        r"c: study\.main\.models: 'demo-small' is given twice",
    ),
    "wrong type where the study names no models": (
        {"models": [MODEL | {"shards": 0}], "study": {"main": {"tasks": ["extractive"]}}},
        r"c: models\[0\]\.shards: .*greater than 0, not 0",
    ),
    "out of range": (
        {"splits": {"calibration_share": 1.5}},
        r"c: splits\.calibration_share: .*less than 1",
    ),
    "a label that steers a terminal": (
        {"models": [MODEL | {"label": "\x1b[2J\x1b[31mM"}]},
        r"c: models\[0\]\.label: holds the control character '\\x1b', which would steer",
    ),
    "no number": (
        {"risk_control": {"confidence": float("nan")}},
        r"c: risk_control\.confidence: Input should be a finite number",
    ),
    "endless resamples": (
        {"bootstrap": {"resamples": 10**12}},
        r"c: bootstrap\.resamples: Input should be less than or equal to 1000000",
    ),
    "a label that is a script": (
        {"models": [MODEL | {"label": "A </SCRIPT> tag"}]},
        r"c: models\[0\]\.label: '</SCRIPT' would run in the report's page",
    ),
    "an error rate that promises nothing": (
        {"risk_control": {"error_rates": [0.1, 1.0]}},
        r"c: risk_control\.error_rates\[1\]: .*less than 1",
    ),
    "a single error rate that is none": (
        {"risk_control": {"error_rates": [1.5]}},
        r"c: risk_control\.error_rates\[0\]: Input should be less than 1, not 1\.5$",
    ),
    "no error rate": (
        {"risk_control": {"error_rates": []}},
        r"c: risk_control\.error_rates: .*at least 1 item",
    ),
    "a headline of a rate that is not tested": (
        {"study": SMOKE["study"] | {"headline": {"task": "arithmetic", "error_rate": 0.35}}},
        r"c: study\.headline\.error_rate: 0\.35 is not defined; there are 0\.05, 0\.1",
    ),
    "a headline of another task": (
        {"study": SMOKE["study"] | {"headline": {"task": "u", "error_rate": 0.3}}},
        r"c: study\.headline\.task: 'u' is not defined; there are",
    ),
    "certainty": (
        {"risk_control": {"confidence": 1}},
        r"c: risk_control\.confidence: .*less than 1",
    ),
    "unknown choice": (
        {"models": [MODEL | {"dtype": "int8"}]},
        r"c: models\[0\]\.dtype: .*'float32', 'bfloat16' or 'float16', not 'int8'",
    ),
    "unknown estimator": (
        {"estimators": ["trcae"]},
        r"c: estimators: unknown estimator 'trcae' \(did you mean 'trace'\?\); allowed: first_token_prob.*trace_plus",
    ),
    "estimator without its basis": (
        {"estimators": ["trace_uncalibrated"]},
        r"c: estimators: 'trace_uncalibrated' is built on 'trace': add it, or leave both out",
    ),
    "no source": (
        {"models": [{"slug": "a", "source": {}}]},
        r"c: models\[0\]\.source: give exactly one of 'path' .*, 'package' .* and 'hub'",
    ),
    "hub without revision": (
        {"models": [{"slug": "a", "source": {"hub": "o/n"}}]},
        r"c: models\[0\]\.source: 'hub' and 'revision' must be given together.*huggingface\.co/o/n/commits",
    ),
    "no repository": (
        {"models": [{"slug": "a", "source": {"hub": "https://hf.co/o/n", "revision": "main"}}]},
        r"c: models\[0\]\.source\.hub: 'https://hf.co/o/n' is not a Hub repository ID.*owner/name",
    ),
    "no revision": (
        {"models": [{"slug": "a", "source": {"hub": "o/n", "revision": "../x"}}]},
        r"c: models\[0\]\.source\.revision: '\.\./x' is not a revision",
    ),
    "missing source": ({"models": [{"slug": "a"}]}, r"c: models\[0\]\.source: is required"),
    "duplicate model": ({"models": [MODEL, MODEL]}, r"c: models: slug 'demo-small' is given twice"),
    "duplicate on a case-blind disk": (
        {"models": [MODEL, MODEL | {"slug": "Demo-Small"}]},
        r"c: models: slug 'Demo-Small' is given twice",
    ),
    "duplicate task": (
        {"tasks": [{"slug": "arithmetic"}, {"slug": "arithmetic"}]},
        r"c: tasks: slug 'arithmetic' is given twice",
    ),
    "a name that YAML reads as a number": (
        {"run": 2024},
        r"c: run: must be text; YAML reads 2024 otherwise: put it in quotes",
    ),
    "slug with a slash": (
        {"models": [MODEL | {"slug": "a/b"}]},
        r"c: models\[0\]\.slug: 'a/b' cannot name files; use letters",
    ),
    "slug that climbs": (
        {"tasks": [{"slug": "a..b"}]},
        r"c: tasks\[0\]\.slug: 'a\.\.b' cannot name",
    ),
    "run that climbs": ({"run": "../elsewhere"}, r"c: run: '\.\./elsewhere' cannot name files"),
    "slug with a shell character": ({"run": "a;b"}, r"c: run: 'a;b' cannot name files"),
    "study of an unknown model": (
        {"study": {"main": {"models": ["x"], "tasks": ["arithmetic"]}}},
        r"c: study\.main\.models: 'x' is not defined; there are demo-small, demo-medium",
    ),
    "study of no task": (
        {"study": {"main": {"models": ["demo-small"], "tasks": []}}},
        r"c: study\.main\.tasks: is empty",
    ),
    "a judgement without the answer": (
        {"self_evaluation": {"p_true_prompt": "{question}: (A) or (B)?"}},
        r"c: self_evaluation\.p_true_prompt: must hold \{answer\}",
    ),
    "a judgement with an unknown field": (
        {"self_evaluation": {"p_true_prompt": "{question} {answer} {reply}"}},
        r"p_true_prompt: unknown field \{reply\}; allowed: \{question\}, \{context\}, \{answer\}",
    ),
    "a beginning that splits the option's token": (
        {"self_evaluation": {"p_true_start": "The answer is "}},
        r"c: self_evaluation\.p_true_start: must not end in white space",
    ),
    "no question at all": (
        {"self_evaluation": {"verbalized_prompt": " "}},
        r"c: self_evaluation\.verbalized_prompt: is empty",
    ),
    "a stray brace": (
        {"self_evaluation": {"verbalized_prompt": "{0.9"}},
        r"verbalized_prompt: is not a template .*for a plain brace",
    ),
    "an estimator without its encoder": (
        {"encoders": {}, "estimators": ["token_sar", "trace"]},
        r"config: token_sar needs encoders\.similarity, which is not set; set it, or list 'estimators'",
    ),
    "phrases without a word on how": (
        {"encoders": {}, "estimators": ["mars"]},
        r"config: mars needs encoders\.importance, which is not set",
    ),
    "samples compared by no model": (
        {
            "encoders": {},
            "sampling": {"equivalence": "nli"},
            "estimators": ["semantic_entropy", "selfcheckgpt"],
        },
        r"config: semantic_entropy and selfcheckgpt need encoders\.entailment.*'sampling\.equivalence: ex",
    ),
    "a single sample": ({"sampling": {"answers": 1}}, r"c: sampling\.answers: .*equal to 2"),
    "an encoder from nowhere": (
        {"encoders": {"similarity": {"source": {}}}},
        r"c: encoders\.similarity\.source: give exactly one of 'path' .*, 'package' .* and 'hub'",
    ),
    "an encoder of LARS from two places": (
        {"lars": {"encoder": {"source": {"train": {}, "path": "x"}}}},
        r"c: lars\.encoder\.source: give exactly one of 'train' .*, 'path' .* and 'hub'",
    ),
    "a name that no file can have": (
        {"run": "r" * 101},
        r"c: run: 'rrrrrrrrrrrrrrrrrrrr'\.\.\. has 101 characters",
    ),
    "a dtype without a tolerance": (
        {"audit": {"tolerance": {"bfloat16": 0.25}}},
        "c: audit.tolerance names no deviation for float32, the dtype of model",
    ),
    "a list for a mapping": ({"splits": []}, r"c: splits: must be a mapping with keys count"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(case):
    changes, message = WRONG[case]
    with pytest.raises(InputError, match=message) as caught:
        load_run(changed(**changes), "c", ROOT)
    assert "\n" not in str(caught.value)


def test_each_finding_has_a_line_and_what_is_allowed_stands_once():
    wrong = [{"slug": "a", "sorce": {}, "source": {"paht": "x"}}, {"slug": "b", "lable": "B"}]
    with pytest.raises(InputError) as caught:
        load_config(changed(modles=[], models=wrong, splits={"cuont": 3}), "c")
    lines = str(caught.value).split("\n")
    for line, start in zip(
        lines,
        (
            "c: unknown key 'modles' (did you mean 'models'?); allowed: run, seed, ",
            "c: models[0]: unknown key 'sorce' (did you mean 'source'?); allowed: ",
            "c: models[0].source: unknown key 'paht' (did you mean 'path'?); allowed: path, ",
            "c: models[1]: unknown key 'lable' (did you mean 'label'?)",
            "c: splits: unknown key 'cuont' (did you mean 'count'?); allowed: count, ",
        ),
        strict=True,
    ):
        assert line.startswith(start)
    assert lines[3].endswith(")"), "what is allowed in a model was said before"


def test_no_configuration_at_all():
    with pytest.raises(InputError, match="run: is required"):
        load_config({}, "c")


# Nine lines that stand for 10^9 values.
BOMB = "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "label: A\nstop: [\ncorrectness: a\n",
            r"mine\.yaml, line 4, column 1: not YAML \(.* from line 2",
        ),
        ("label: A\n\tstop: b\n", r"mine\.yaml, line 2, column 1: not YAML \(.*'\\t'"),
        (
            "label: A\nsource: {path: 'x{y}.csv'}\nfields: {question: q, references: a}\n"
            "correctness: alias\n",
            r"source: unknown field \{y\}; allowed: \{split\}, \{language\}",
        ),
        ("label: A\nsource: {path: x.csv}\ncorrectness: numeric\n", "'fields' is required"),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\nprompt: '{question.__class__}'\n"
            "correctness: numeric\n",
            r"prompt: unknown field \{question\.__class__\}",
        ),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\nstop: ['']\ncorrectness: numeric\n",
            "empty stop",
        ),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: guess\n",
            "correctness: .*not 'guess'",
        ),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: alias\nanswer_pattern: 'a(b)(c)'\n",
            "exactly one group",
        ),
        (
            "label: A\nlabel: B\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: alias\n",
            r"mine\.yaml, line 2, column 1: not YAML \(the key 'label' is given twice\)",
        ),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: alias\nprompt: '{question:d}'\n",
            r"prompt: write \{question\} without a format",
        ),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: alias\nprompt: '{question!z}'\n",
            "prompt: ",
        ),
        (
            'label: "A \\ud800"\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: alias\n',
            "an unpaired surrogate",
        ),
        (
            "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: custom.mine\n",
            r"mine\.yaml: correctness: 'custom\.mine' needs the key 'custom_rules'",
        ),
        ("a0: &a0 [x]\n" + BOMB, r"its aliases stand for [\d,]+ values"),
        (
            "a0: &a0 {k: 1}\n" + BOMB.replace("[", "{<<: [").replace("]", "]}"),
            r"not YAML \(its merges \(<<\) stand for",
        ),
        ("[" * 100_000, r"mine\.yaml.* not"),
    ],
)
def test_a_wrong_task_file_is_said_in_a_sentence(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    tasks = [{"slug": "mine", "file": "mine.yaml"}]
    config = load_config(changed(tasks=tasks, study=study_of("mine")), "c")
    with pytest.raises(InputError, match=message):
        load_tasks(config, tmp_path)


def test_a_merge_may_be_overridden(tmp_path):
    (tmp_path / "mine.yaml").write_text("x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}\n")
    assert read_yaml(tmp_path / "mine.yaml")["y"] == {"a": 3, "b": 2}


def study_of(task):
    return {"main": {"models": ["demo-small"], "tasks": [task]}}


def test_a_missing_task_file_is_answered_with_those_there_are():
    config = load_config(changed(tasks=[{"slug": "mine"}], study=study_of("mine")), "c")
    with pytest.raises(InputError, match=r"no task file config/tasks/mine\.yaml.*svamp"):
        load_tasks(config, ROOT)


def test_a_task_file_where_snakemake_works_comes_before_the_workflows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config(changed(tasks=[{"slug": "svamp"}], study=study_of("svamp")), "c")
    assert load_tasks(config, ROOT)["svamp"].label == "SVAMP"
    (tmp_path / "config/tasks").mkdir(parents=True)
    mine = "label: Mine\nsource: {path: x.csv}\nfields: {question: q, references: a}\ncorrectness: numeric\n"
    (tmp_path / "config/tasks/svamp.yaml").write_text(mine)
    assert load_tasks(config, ROOT)["svamp"].label == "Mine"


def test_a_run_overrides_limits_of_the_task_file():
    tasks = [{"slug": "arithmetic", "limit": 7, "training_limit": 0}, {"slug": "extractive"}]
    specs = load_tasks(load_config(changed(tasks=tasks), "c"), ROOT)
    assert (specs["arithmetic"].limit, specs["arithmetic"].training_limit) == (7, 0)
    assert specs["extractive"].limit is None


HUB_TASK = """
label: A
source: {hub: o/n, SOURCE}
fields: {question: q, references: a}
correctness: alias
"""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("split: test", "'hub' needs 'revision'.*datasets/o/n/commits"),
        (
            "revision: abc, languages: [en]",
            "'languages' and '{language}' in 'config' must be given together",
        ),
        ("revision: abc, split: 'test[:10]'", "'test\\[:10\\]' is not a valid name"),
        ("revision: abc, path: x.csv", "exactly one of 'path' .*'hub' .*'parts_of'"),
    ],
)
def test_a_wrong_hub_source_of_a_task_is_said(tmp_path, monkeypatch, source, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(HUB_TASK.replace("SOURCE", source), encoding="utf-8")
    tasks = [{"slug": "mine", "file": "mine.yaml"}]
    config = load_config(changed(tasks=tasks, study=study_of("mine")), "c")
    with pytest.raises(InputError, match=message):
        load_tasks(config, tmp_path)


def test_a_run_reads_local_files_instead_of_the_hub():
    path = "data/{split}-{language}.jsonl"
    tasks = [{"slug": "mlqa", "path": path}, {"slug": "svamp", "training_limit": 0}]
    specs = load_tasks(load_config(changed(tasks=tasks, study=study_of("mlqa")), "c"), ROOT)
    mlqa, svamp = specs["mlqa"], specs["svamp"]
    assert (mlqa.source.hub, mlqa.source.revision, mlqa.source.path) == (None, None, path)
    assert mlqa.local_files()[:2] == ["data/test-ar.jsonl", "data/test-de.jsonl"]
    assert len(mlqa.local_files()) == 14
    assert [part.name for part in svamp.row_files()] == ["test"]
    single = [{"slug": "svamp", "path": "rows.csv"}]
    with pytest.raises(InputError, match=r"'training_split' needs '\{split\}' .*'rows/\{split\}"):
        load_tasks(load_config(changed(tasks=single, study=study_of("svamp")), "c"), ROOT)
    single[0]["training_limit"] = 0
    alone = load_tasks(load_config(changed(tasks=single, study=study_of("svamp")), "c"), ROOT)
    assert alone["svamp"].local_files() == ["rows.csv"]
    wrong = [{"slug": "mlqa", "path": "data/{split}.jsonl"}]
    with pytest.raises(InputError, match="task 'mlqa', read from data/.*'languages'"):
        load_tasks(load_config(changed(tasks=wrong, study=study_of("mlqa")), "c"), ROOT)


def test_the_resolved_configuration_does_not_depend_on_order():
    def resolved(value):
        return load_run(value, "c", ROOT).resolved

    reordered = {key: SMOKE[key] for key in reversed(SMOKE)}
    reordered = copy.deepcopy(reordered) | {
        "models": SMOKE["models"][::-1],
        "tasks": SMOKE["tasks"][::-1],
    }
    assert resolved(reordered) == resolved(SMOKE)
    assert yaml.safe_load(resolved(SMOKE))["splits"] == {"count": 3, "calibration_share": 0.35}


def selection(**changes):
    return load_run(changed(**changes), "c", ROOT).selection


def test_unnamed_estimators_are_all_that_the_configuration_allows():
    assert (*selection().chosen.ids,) == IDS
    assert selection().warnings == []
    tasks = [{"slug": slug, "training_limit": 0} for slug in ("arithmetic", "extractive")]
    run_selection = selection(encoders={}, sampling={"equivalence": "exact"}, tasks=tasks)
    ids, left_out = {*run_selection.chosen.ids}, run_selection.left_out
    assert set(IDS) - ids == set(left_out)
    assert "mars_with_trace is left out: mars is left out" in run_selection.warnings
    assert {"token_sar", "mars", "mars_with_trace", "lars", "internal_probe"} <= set(left_out)
    assert "needs encoders.similarity" in left_out["token_sar"]
    assert left_out["mars_with_trace"] == "mars is left out"
    assert {"seq_logp", "trace_plus", "p_true", "semantic_entropy"} <= ids


def test_the_variant_of_semantic_entropy_that_is_configured_is_in_its_label():
    def label(**sampling):
        run_selection = selection(sampling={"answers": 3} | sampling)
        (one,) = run_selection.chosen.with_ids(["semantic_entropy"])
        return one.label

    assert label() == "Semantic Entropy"
    assert label(same_meaning="no_contradiction") == "Semantic Entropy (no contradiction)"
    assert label(same_meaning="no_contradiction", equivalence="exact") == "Semantic Entropy"


def test_models_of_the_cross_study_alone_may_do_without_broader_methods():
    tasks = [{"slug": "arithmetic", "training_limit": 0}, {"slug": "extractive"}]
    study = {
        "main": {"models": ["demo-small"], "tasks": ["extractive"]},
        "cross": {"models": ["demo-medium"], "tasks": ["arithmetic"], "broader": False},
        "broader": {"models": ["demo-medium"]},
    }
    run_selection = selection(tasks=tasks, study=study)
    # Nothing could be trained on the other model's task, and nothing need be.
    every = run_selection.chosen
    assert not run_selection.left_out
    assert run_selection.computed("demo-small") == every
    some = run_selection.computed("demo-medium")
    assert {one.role for one in every} - {one.role for one in some} == {"broader"}
    left = {*every.ids} - {*some.ids}
    assert left == {one.id for one in every if one.role == "broader"}
    assert {"p_true", "lars", "internal_probe", "semantic_entropy", "trace_profile"} <= left
    with pytest.raises(InputError, match="computed for model 'demo-medium': name it"):
        selection(estimators=["p_true"], study=study)
    study["cross"]["broader"] = True
    assert set(selection(tasks=tasks, study=study).left_out) == {"lars", "internal_probe"}


def test_what_costs_most_is_computed_for_the_first_model_unless_others_are_named():
    models = [model["slug"] for model in SMOKE["models"]]
    study = {"main": {"tasks": ["extractive"]}}
    first, second = map(selection(study=study).computed, models)
    named, cost = {"broader": {"models": models[1:]}}, {*first.ids} - {*second.ids}
    assert cost >= {"beam_ratio", "token_sar", "p_true", "semantic_entropy", "lars"}
    assert {"seq_logp", "mars", "trace", "trace_plus", "trace_profile"} <= {*second.ids}
    assert selection(study=study | named).computed(models[1]) == first


def test_all_models_are_in_the_main_study_and_compared_unless_the_study_names_some():
    models = tuple(model["slug"] for model in SMOKE["models"])
    config = load_config(SMOKE | {"study": {"main": {"tasks": ["extractive"]}}}, "c")
    assert config.study.main.models == config.study.cross.models[::-1] == models
    assert config.study.cross.tasks == ("extractive",)
    config = load_config(SMOKE | {"study": study_of("extractive")}, "c")
    assert config.study.cross is None


def test_what_costs_most_may_be_computed_on_a_subset_of_the_main_study_alone():
    study = {
        "main": {"models": ["demo-small"], "tasks": ["extractive"]},
        "cross": {"models": ["demo-medium"], "tasks": ["extractive"]},
    }
    assert not selection(study=study).on_subset()
    run_selection = selection(study=study | {"broader": {"answers": 30, "models": ["demo-medium"]}})
    assert run_selection.on_subset() == run_selection.chosen
    assert run_selection.main == run_selection.computed("demo-small", "extractive")
    for model in ("demo-small", "demo-medium"):
        rest = {*run_selection.chosen.ids} - {*run_selection.computed(model).ids}
        assert rest == {
            *("beam_ratio", "beam_tail_thinness", "beam_entropy", "token_sar"),
            *("token_sar_with_trace", "trace_plus_with_token_sar"),
            *("p_true", "verbalized", "internal_probe", "semantic_entropy", "selfcheckgpt"),
        }


def test_named_estimators_that_cannot_be_computed_are_an_error():
    tasks = [{"slug": slug, "training_limit": 0} for slug in ("arithmetic", "extractive")]
    with pytest.raises(InputError, match="lars must be trained on rows of role 'training'"):
        selection(estimators=["lars", "trace"], tasks=tasks)


def test_an_encoder_is_used_by_those_whose_needs_name_it():
    run_selection = selection()
    assert run_selection.users("similarity") == ["token_sar"]
    assert run_selection.users("importance") == ["mars"]
    assert run_selection.users("entailment") == ["semantic_entropy", "selfcheckgpt"]
    assert run_selection.users("lars") == ["lars"]
    exact = selection(sampling={"equivalence": "exact"}, estimators=["semantic_entropy", "trace"])
    assert exact.users("entailment") == exact.users("lars") == []
