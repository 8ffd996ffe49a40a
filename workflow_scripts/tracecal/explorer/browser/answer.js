// One answer: its tokens and their shade, its references, and each estimator's confidence.

const ROLES = {
  trace: "TRACE", baseline: "Baselines", broader: "Other families", variant: "Variants",
};
const opened = {
  prompt: false, tokens: false, passage: true, elsewhere: true, parts: true,
};

function showAnswer(answers, at, state) {
  const { columns } = answers;
  const hidden = Boolean(answers.labels?.hides(at));
  const outcome = answers.outcome(at);
  const question = element("h2", {}, ...asked(answers, at, state.find));
  const told = element("p", { class: `verdict ${look(columns.correct[at], outcome)}` },
    `${sign(columns.correct[at], outcome)} ${outcome}`, ...explained(columns, at));
  const text = hidden ? plainTokens(answers, at) : tokens(answers, at, state);
  const where = element("p", { class: "where" },
    `${answers.label("model", at)} · ${answers.label("task", at)} · `,
    quoted(columns.example_id[at]),
    columns.language[at] ? ` · ${columns.language[at]}` : "", " · ",
    element("a", { href: address({ ...state, answer: answers.name[at] }, answers) },
      "link to this answer"), " · ",
    copier("copy as text", () => asText(answers, at, state.by)), " · ",
    copier("copy as JSON", () => JSON.stringify(asObject(answers, at), null, 1)));
  const parts = [
    ...(answers.labels
      ? [element("div", { class: "beside" }, text, answers.labels.verdicts), told]
      : [where, question, told, ...decision(answers, at, state), text]),
    ...partsTable(answers, at, state),
    facts(columns, at, state.find, hidden),
    noteField(answers, at),
    ...passage(answers, at),
    ...(answers.labels ? [] : elsewhere(answers, at, state)),
    ...(hidden ? [] : [fold("tokens", "Tokens in numbers", () => tokenTable(answers, at))]),
    fold("prompt", "Prompt as the model read it", () =>
      element("pre", { dir: "auto" }, visible(columns.prompt[at]))),
    ...(answers.labels ? [where] : []),
    ...(answers.estimators.length && !hidden ? [estimatorTable(answers, at, state.by)] : []),
  ];
  const shown = document.getElementById("answer");
  if (answers.labels) shown.replaceChildren(question, element("div", {}, ...parts));
  else shown.replaceChildren(...parts);
  if (!answers.labels && question.scrollHeight > question.clientHeight) question.after(unfold(question));
  shown.scrollTop = 0;
}

// Shows all of a question of which only the first lines are shown.
function unfold(question) {
  const button = element("button", { type: "button", class: "copy" }, "the whole question");
  button.addEventListener("click", () => {
    question.classList.add("whole");
    button.remove();
  });
  return button;
}

// What "as a whole" means, of an answer that is wrong so.
function explained(columns, at) {
  const whole = columns.correct[at] === false && columns.error_kind[at] === "global";
  return whole ? [element("small", {}, `: ${AS_A_WHOLE}`)] : [];
}

// The text alone, as long as its scores are hidden; of a part all that of its answer, with the part
// that is judged outlined.
function plainTokens(answers, at) {
  const { tokens } = answers.parts.trace(at);
  const { name, start, end } = answers.parts.place.get(at) ?? {};
  const text = (from, to) => visible(tokens.slice(from, to).join(""));
  return element("section", { class: "text-of-answer", "aria-label": "Answer" },
    element("p", { class: "tokens", dir: "auto" }, ...(name == null ? [visible(answers.written(at))] : [
      text(0, start), element("span", { class: "part own", title: name }, text(start, end)), text(end)])));
}

// The tokens; of a part all those of its answer, with every part outlined.
function tokens(answers, at, { shade, by }) {
  const { darkest } = answers;
  const [trace, parts] = [answers.parts.trace(at), answers.parts.of(at)];
  // Answers from files may lack entropies.
  const [texts, values] = [trace.tokens, trace[shade] ?? []];
  const start = trace.peak ?? Infinity;
  const width = Math.min(answers.window, texts.length);
  // Without the texts of tokens the answer's own text stands above their shades.
  const untold = texts.every((text) => text === "");
  const line = element("p", { class: untold ? "tokens untold" : "tokens", dir: "auto" });
  let [within, group, peak] = [undefined, line, null];
  texts.forEach((text, t) => {
    const part = parts.find((one) => t >= one.start && t < one.end);
    if (part !== within) {
      [within, group, peak] = [part, part ? outline(answers, part, at, by) : line, null];
      if (part) line.append(group);
    }
    if (t < start || t >= start + width) peak = null;
    else if (!peak) group.append(peak = element("span", { class: "peak", title: "peak window" }));
    const special = SPECIAL.test(text);
    const chip = element("span", {
      class: special ? "token special" : "token",
      title: `${special ? `special token ${text}, ` : ""}${numbers(trace, t)}`,
    }, untold ? "\u00a0" : special ? "∎" : piece(text));
    chip.style.setProperty("--shade", `${100 * Math.sqrt(Math.min(1, (values[t] ?? 0) / darkest[shade]))}%`);
    (peak ?? group).append(chip);
  });
  const named = width > 1 ? `tokens ${start + 1}–${start + width}` : `token ${start + 1}`;
  return element("section", { class: "text-of-answer", "aria-label": "Answer" },
    ...(untold ? [element("p", { class: "tokens", dir: "auto" }, visible(answers.written(at)))] : []),
    line,
    element("div", { class: "legend" },
      ...(untold ? [element("span", {}, "a box is a token, whose text the file lacks")] : []),
      element("span", {}, `${shade} 0`, ramp("first"), (darkest[shade] / 4).toFixed(2), ramp("second"),
        `${darkest[shade].toFixed(2)} nats and more`),
      start === Infinity ? element("span", {}, "no entropies")
        : element("span", {}, element("span", { class: "peak" }, "peak window"),
          ` ${named}, mean entropy ${answers.peak(at, trace).toFixed(3)} nats`),
      ...(parts.length ? [element("span", {}, "part: ",
        ...[["correct", "✓ right"], ["wrong", "✗ wrong"]].flatMap(([kind, words]) =>
          [element("span", { class: `part ${kind}` }, words), " "]),
        "with its confidence; the stronger its upper edge, the less probable")] : [])));
}

// Half of the colour scale, which follows the square root, as most tokens are nearly certain.
function ramp(half) {
  return element("span", { class: `ramp ${half}` });
}

// A token's own text, with line ends and tokens that complete no character made visible.
function piece(text) {
  return visible(text).replaceAll("\n", "↵\n") || "◌";
}

function numbers(trace, t) {
  const [surprisal, entropy] = [trace.surprisal?.[t] ?? null, trace.entropy?.[t] ?? null];
  if (surprisal === null) return "no probabilities are known";
  return `token ${t + 1}: probability ${Math.exp(-surprisal).toFixed(4)}, ` +
    `surprisal ${surprisal.toFixed(3)}, entropy ${number(entropy, 3)} nats`;
}

// Without what was judged where that is the text above, all `plain`.
function facts(columns, at, sought, plain = false) {
  // Other names of one thing stand in a line, sentences below each other.
  const list = (texts) =>
    element("ul", { class: texts.every((text) => text.length < 30) ? "names" : "" },
      ...texts.map((text) => element("li", {}, quoted(text, sought))));
  const rows = [["Judged", plain ? [] : [columns.prediction[at] || "(empty)"]],
    [columns.references[at].length > 1 ? "References" : "Reference", columns.references[at]],
    ["False references", columns.distractors[at] ?? []]];
  return element("dl", {}, ...rows.filter(([, texts]) => texts.length).flatMap(([term, texts]) =>
    [element("dt", {}, term), element("dd", {}, list(texts))]));
}

// A collapsible part, which stays open or closed from answer to answer.
function fold(name, title, content) {
  const details = element("details", { id: name }, element("summary", {}, title));
  details.open = opened[name];
  const fill = () => details.childElementCount > 1 || details.append(content());
  if (details.open) fill();
  details.addEventListener("toggle", () => {
    opened[name] = details.open;
    if (details.open) fill();
  });
  return details;
}

function headings(...names) {
  return element("thead", {}, element("tr", {}, ...names.map((name) =>
    element("th", { scope: "col" }, name))));
}

function tokenTable(answers, at) {
  const { tokens, surprisal, entropy } = answers.columns;
  const rows = tokens[at].map((text, t) => element("tr", {},
    element("td", {}, String(t + 1)),
    element("th", { scope: "row", class: "piece" }, element("bdi", {}, piece(text))),
    element("td", {}, number(surprisal[at] && Math.exp(-surprisal[at][t]), 4)),
    element("td", {}, number(surprisal[at]?.[t] ?? null, 4)),
    element("td", {}, number(entropy[at]?.[t] ?? null, 4))));
  return element("table", {}, element("caption", {}, "Surprisal and entropy in nats"),
    headings("No.", "Token", "Probability", "Surprisal", "Entropy"),
    element("tbody", {}, ...rows));
}

function estimatorTable(answers, at, by) {
  const row = ({ id, label, family, role }) => {
    const probability = answers.probability(id, at);
    const bar = element("span", { class: "bar", "data-look": role === "trace" ? id : family });
    bar.style.setProperty("--length", `${100 * (probability ?? 0)}%`);
    return element("tr", { "data-estimator": id, class: id === by ? "by" : null },
      element("th", { scope: "row" }, label),
      element("td", {}, number(probability, 3)),
      element("td", { class: "drawn", "aria-hidden": "true" }, bar),
      element("td", {}, significant(answers.columns.score[id][at])));
  };
  const bodies = Object.entries(ROLES).map(([role, title]) => {
    const rows = answers.estimators.filter((one) => one.role === role).map(row);
    return element("tbody", { hidden: rows.length ? null : "" },
      element("tr", {}, element("th", { scope: "rowgroup", colspan: 4, class: "role" }, title)),
      ...rows);
  });
  return element("table", { class: "estimators" },
    element("caption", {}, `How sure each estimator is. Probability: calibrated, ${answers.ofFile
      ? "by the fit on all labels of the calibrator; of an answer among these by a fit that had not "
        + "seen it, where the calibrator has one" : "the mean over the splits in which this answer was held out"}. Score: raw, `
      + "larger is more confident. –: undefined for this answer, or not computed."),
    element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, "Estimator"),
      element("th", { scope: "col", colspan: 2 }, "Probability"),
      element("th", { scope: "col" }, "Score"))),
    ...bodies);
}
