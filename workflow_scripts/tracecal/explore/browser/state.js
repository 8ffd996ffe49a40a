// What is chosen: the controls, the shade and the answer, kept in the address after the '#'.

const DEFAULTS = {
  model: "", task: "", outcome: "", by: "", order: "down", find: "", shade: "entropy", answer: "",
};

function defaultsFor(answers) {
  const by = answers.estimator.has("trace_plus") ? "trace_plus" : answers.estimators[0].id;
  return { ...DEFAULTS, by };
}

function readState(answers) {
  const state = defaultsFor(answers);
  const given = new URLSearchParams(location.hash.slice(1));
  const allowed = {
    model: (value) => answers.named.model.some((one) => one.id === value),
    task: (value) => answers.named.task.some((one) => one.id === value),
    outcome: (value) => outcomes(answers).some(([outcome]) => outcome === value),
    by: (value) => answers.estimator.has(value),
    order: (value) => ["up", "down"].includes(value),
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
  const kinds = answers.kinds.map((kind) => [`wrong-${kind}`, `wrong: ${kind}`]);
  return [["correct", "correct"], ["wrong", "wrong"], ...kinds];
}
