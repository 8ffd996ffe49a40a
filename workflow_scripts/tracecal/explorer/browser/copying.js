// Exports answers: one to the clipboard as text or JSON, the listed ones as CSV or JSON Lines.

function asText(answers, at, by) {
  const { columns } = answers;
  const label = answers.estimator.get(by)?.label ?? "no estimator";
  return [
    `${answers.label("model", at)} · ${answers.label("task", at)} · ${columns.example_id[at]}`,
    `Question: ${columns.question[at]}`,
    ...(answers.parts.name(at) === null ? [] : [`Part: ${answers.parts.name(at)}`]),
    `Answer: ${columns.tokens[at].join("")}`,
    `Judged: ${columns.prediction[at] || "(empty)"} (${answers.outcome(at).toLowerCase()})`,
    `References: ${columns.references[at].join("; ")}`,
    `Confidence by ${label}: ${answers.confidenceInWords(by, at)}`,
  ].join("\n");
}

// All that the page holds of an answer, with numbers as it shows them: nats and probabilities.
function asObject(answers, at) {
  const ofAnswer = (columns) =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[at]]));
  const { probability, held_out, score, ...plain } = answers.columns;
  return {
    ...ofAnswer(plain),
    model: answers.slug("model", at),
    task: answers.slug("task", at),
    context: answers.passage(at),
    part: answers.parts.name(at),
    probability: ofAnswer(probability),
    held_out: ofAnswer(held_out),
    score: ofAnswer(score),
    note: noteOf(answers, at),
  };
}

function asJsonLines(answers, chosen) {
  return chosen.map((at) => `${JSON.stringify(asObject(answers, at))}\n`).join("");
}

// One line per answer; what is a list or absent in JSON is joined by " | " or empty.
function asCsv(answers, chosen) {
  const rows = chosen.map((at) => {
    const { tokens, surprisal, entropy, peak, prompt, context, ...plain } = asObject(answers, at);
    return Object.entries({ ...plain, answer: tokens.join("") }).flatMap(([name, value]) =>
      value && typeof value === "object" && !Array.isArray(value)
        ? Object.entries(value).map(([id, one]) => [`${name}.${id}`, one])
        : [[name, Array.isArray(value) ? value.join(" | ") : value]]);
  });
  const quote = (value) => (value === null ? "" : `"${String(value).replaceAll('"', '""')}"`);
  const lines = [(rows[0] ?? []).map(([name]) => name), ...rows.map((row) => row.map(([, value]) => value))];
  return lines.map((line) => `${line.map(quote).join(",")}\n`).join("");
}

function save(name, text) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text])) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
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
    // The clipboard API is blocked inside a frame; the older way still works there.
    const area = element("textarea", {}, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
