// What is chosen: the controls, the shade and the answer, kept in the address after the '#'.

const DEFAULTS = {
  model: "", task: "", language: "", outcome: "", order: "down", threshold: "0.5", find: "",
  shade: "entropy", answer: "",
};
// Wrong, with a confidence of at least the threshold.
const CONFIDENT = "confident";
const NOTED = "noted";
const ORDERS = ["down", "up", "disagreement", "long", "short", "peak"];

function defaultsFor(answers) {
  const ids = answers.estimators.map((one) => one.id);
  const by = [answers.use, "trace_plus"].find((id) => answers.estimator.has(id)) ?? ids[0];
  const told = answers.decision?.threshold ?? null;
  const threshold = told === null ? DEFAULTS.threshold : String(Math.floor(100 * told + 1e-9) / 100);
  return { ...DEFAULTS, threshold, by, versus: ids.find((id) => id !== by) ?? by };
}

function readState(answers) {
  const state = defaultsFor(answers);
  const given = new URLSearchParams(location.hash.slice(1));
  const allowed = {
    model: (value) => answers.named.model.some((one) => one.id === value),
    task: (value) => answers.named.task.some((one) => one.id === value),
    language: (value) => answers.languages.includes(value),
    outcome: (value) => outcomes(answers).some(([outcome]) => outcome === value),
    by: (value) => answers.estimator.has(value),
    versus: (value) => answers.estimator.has(value),
    order: (value) => ORDERS.includes(value),
    threshold: (value) => /^(0(\.\d+)?|1)$/.test(value),
    find: () => true,
    shade: (value) => ["surprisal", "entropy"].includes(value),
    answer: (value) => answers.byName.has(value),
  };
  for (const [key, fits] of Object.entries(allowed)) {
    if (given.has(key) && fits(given.get(key))) state[key] = given.get(key);
  }
  return state;
}

function address(state, answers) {
  const usual = defaultsFor(answers);
  const changed = Object.entries(state).filter(([key, value]) => value !== usual[key]);
  return `#${new URLSearchParams(changed)}`;
}

function outcomes(answers) {
  const kinds = answers.kinds.map((kind) => [`wrong-${kind}`, `wrong ${KINDS[kind] ?? `(${kind})`}`]);
  return [["correct", "correct"], ["wrong", "wrong"], [CONFIDENT, "wrong and confident"], ...kinds,
    ...(answers.columns.correct.includes(null) ? [["unlabelled", "not labelled"]] : []),
    ...(answers.parts.families.size ? [[POINTED, "peak in a wrong part"], [MISSED, "peak elsewhere"]] : []),
    [NOTED, "with a note"]];
}
