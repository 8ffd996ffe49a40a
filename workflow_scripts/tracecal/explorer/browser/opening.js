// What the page opens on: an error that the confidence caught beside an answer that it trusted.

function showOpening(answers, { caught, trusted }, state, showErrors) {
  const estimator = answers.estimator.get(state.by).label;
  const errors = answers.filtered({ ...state, outcome: CONFIDENT }).length;
  const next = element("button", { type: "button" }, `Confident errors (${grouped(errors)})`);
  next.addEventListener("click", showErrors);
  document.getElementById("answer").replaceChildren(
    element("div", { class: "opening" },
      card(answers, caught, state, "Caught: the least confident wrong answer"),
      card(answers, trusted, state, "Trusted: the most confident correct answer")),
    element("p", {}, `Both are ${answers.label("model", caught)}'s on ${answers.label("task", caught)}, `
      + `chosen as the extremes of its confidence by ${estimator}; they show what it can do, not how `
      + "often. What it misses, wrong answers at or above the threshold, comes next:"),
    element("p", {}, next));
}

function card(answers, at, state, title) {
  const { columns } = answers;
  return element("section", { class: "card", "aria-label": title },
    element("p", { class: "where" }, title),
    element("h2", {}, element("a", { href: address({ ...state, answer: answers.name[at] }, answers) },
      ...asked(answers, at))),
    element("p", { class: `verdict ${look(columns.correct[at])}` },
      `${sign(columns.correct[at])} ${answers.outcome(at)}, `
      + `confidence ${number(answers.probability(state.by, at), 2)}`, ...explained(columns, at)),
    tokens(answers, at, state),
    facts(columns, at, ""));
}
