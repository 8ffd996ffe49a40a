// Copies an answer: as text to read, or as JSON to compute with.

function asText(answers, at, by) {
  const { columns } = answers;
  const label = answers.estimator.get(by).label;
  return [
    `${answers.label("model", at)} · ${answers.label("task", at)} · ${columns.example_id[at]}`,
    `Question: ${columns.question[at]}`,
    `Answer: ${columns.tokens[at].join("")}`,
    `Judged: ${columns.prediction[at] || "(empty)"} (${answers.outcome(at).toLowerCase()})`,
    `References: ${columns.references[at].join("; ")}`,
    `Confidence by ${label}: ${number(answers.probability(by, at), 3)}`,
  ].join("\n");
}

// All that the page holds of an answer, with numbers as it shows them: nats and probabilities.
function asJson(answers, at) {
  const ofAnswer = (columns) =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[at]]));
  const { probability, score, ...plain } = answers.columns;
  return JSON.stringify({
    ...ofAnswer(plain),
    model: answers.slug("model", at),
    task: answers.slug("task", at),
    context: answers.passage(at),
    probability: ofAnswer(probability),
    score: ofAnswer(score),
  }, null, 1);
}

function copier(label, text) {
  const button = element("button", { type: "button", class: "copy" }, label);
  button.addEventListener("click", async () => {
    button.textContent = await copied(text()) ? "copied" : "could not copy";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page inside a frame has no clipboard of its own; an older way still works there.
    const area = element("textarea", {}, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
