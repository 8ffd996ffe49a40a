// What belongs to an answer: whether it is kept, the passage it was asked about, and the same
// question elsewhere.

// Whether an answer is kept at the page's error rate, and why that is no contradiction to its own
// probability.
function decision(answers, at, { by }) {
  if (!answers.decision?.kept) return [];
  const { rate, kept, reasons } = answers.decision;
  const target = `at an error rate of ${significant(100 * rate)} %`;
  if (kept[at] === null) return [element("p", { class: "decision" }, `No decision ${target}: ${reasons[at]}`)];
  const p = answers.probability(by, at);
  const odd = p !== null && kept[at] !== p >= 0.5;
  const why = " The guarantee is about the share of wrong answers among all that are kept, not about this one.";
  return [element("p", { class: "decision" }, `${kept[at] ? "Kept" : "Not kept"} ${target}.`, odd ? why : "")];
}

function passage(answers, at) {
  const text = answers.passage(at);
  if (text === null) return [];
  const { references, prediction } = answers.columns;
  const wanted = [
    ...references[at].map((words) => [visible(words), "reference"]),
    [visible(prediction[at]), "judged"],
  ].filter(([words]) => words.trim());
  return [fold("passage", "Passage", () => element("div", {},
    element("p", { class: "passage", dir: "auto" }, ...marked(visible(text), wanted)),
    element("p", { class: "legend" }, element("mark", { class: "reference" }, "reference"), " ",
      element("mark", { class: "judged" }, "what the model answered"))))];
}

function elsewhere(answers, at, state) {
  const others = answers.siblings(at);
  if (!others.length) return [];
  const { columns } = answers;
  const row = (other) => {
    const link = address(
      { ...defaultsFor(answers), by: state.by, shade: state.shade, answer: answers.name[other] },
      answers);
    const same = columns.question[other] === columns.question[at];
    return element("tr", {},
      element("th", { scope: "row" }, element("a", { href: link }, answers.label("model", other))),
      element("td", {}, columns.language[other] ?? ""),
      element("td", { class: "text" }, same ? "the same words" : quoted(columns.question[other])),
      element("td", {}, verdict(columns.correct[other], answers.outcome(other))),
      element("td", { class: "text" }, quoted(columns.prediction[other] || "(empty)")),
      element("td", {}, number(answers.probability(state.by, other), 3)));
  };
  return [fold("elsewhere", `The same question elsewhere (${grouped(others.length)})`, () =>
    element("table", { class: "elsewhere" },
      element("caption", {}, "Other models, wordings and languages of this question"),
      headings("Model", "Language", "Question", "Verdict", "Answer", "Confidence"),
      element("tbody", {}, ...others.map(row))))];
}
