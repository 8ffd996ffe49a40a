// Parts of an answer: where each stands in it, and whether the risk lies in one that is wrong.

// The peak window points at a wrong part, or elsewhere, of an answer that holds right and wrong ones.
const POINTED = "peak-wrong";
const MISSED = "peak-elsewhere";

class Parts {
  // Gives rows the tokens that their whole answers hold.
  constructor({ columns, parents, places, window }) {
    Object.assign(this, { columns, parents, window });
    this.place = new Map((places.row ?? []).map((row, n) => [row, {
      row, parent: places.parent[n], name: places.part[n], start: places.start[n], end: places.end[n],
    }]));
    this.families = new Map();
    for (const place of this.place.values()) {
      const { row, parent, name, start, end } = place;
      columns.prompt[row] = parents.prompt[parent];
      for (const kind of ["tokens", "surprisal", "entropy"]) {
        columns[kind][row] = parents[kind][parent]?.slice(start ?? 0, end ?? undefined) ?? null;
      }
      if (name === null) continue;
      const tasks = this.families.get(parent) ?? new Map();
      this.families.set(parent, tasks);
      const task = columns.task[row];
      tasks.set(task, [...(tasks.get(task) ?? []), place]);
    }
    for (const tasks of this.families.values()) {
      for (const family of tasks.values()) family.sort((a, b) => a.start - b.start || a.end - b.end);
    }
    this.found = new Map();
  }

  name(at) {
    return this.place.get(at)?.name ?? null;
  }

  // All parts of the answer that a row is, or is a part of, in the order of its text. Where several
  // tasks are of its parts, a whole answer shows those of one.
  of(at) {
    const tasks = this.families.get(this.place.get(at)?.parent);
    return tasks?.get(this.columns.task[at]) ?? tasks?.values().next().value ?? [];
  }

  // Whether any part of the answer is wrong, of whatever task.
  areWrong(at) {
    const tasks = this.families.get(this.place.get(at)?.parent) ?? new Map();
    return [...tasks.values()].flat().some(({ row }) => this.columns.correct[row] === false);
  }

  // The tokens of the whole answer, with their numbers and the first token of its peak window.
  trace(at) {
    const parent = this.place.get(at)?.parent;
    const [from, n] = parent === undefined ? [this.columns, at] : [this.parents, parent];
    return { tokens: from.tokens[n], surprisal: from.surprisal[n], entropy: from.entropy[n], peak: from.peak[n] };
  }

  // The part at which the peak window points, as in the table `localisation`: that with the largest
  // share of the window's entropy; null where the window is outside of all.
  pointed(at) {
    const { entropy, peak } = this.trace(at);
    if (peak === null) return null;
    const end = Math.min(peak + this.window, entropy.length);
    let [most, found] = [-1, null];
    for (const part of this.of(at)) {
      const own = entropy.slice(Math.max(peak, part.start), Math.max(peak, Math.min(end, part.end)));
      const risk = own.reduce((sum, value) => sum + value, 0);
      if (own.length && risk > most) [most, found] = [risk, part];
    }
    return found;
  }

  // POINTED or MISSED of an answer with right and wrong parts, else null; of parts, one row of each
  // answer has it: the part that is pointed at, or the first where none is.
  aim(at) {
    if (!this.found.has(at)) this.found.set(at, this.aimed(at));
    return this.found.get(at);
  }

  aimed(at) {
    const parts = this.of(at);
    const { correct } = this.columns;
    const verdicts = parts.map(({ row }) => correct[row]);
    if (!verdicts.includes(true) || !verdicts.includes(false) || this.trace(at).peak === null) return null;
    const part = this.pointed(at);
    if (this.name(at) !== null && (part ?? parts[0]).row !== at) return null;
    if (part && correct[part.row] === null) return null;
    return part && !correct[part.row] ? POINTED : MISSED;
  }
}

// What is known of a part: "✗ 0.31"
function partInWords(answers, { row }, by) {
  const known = answers.confidence(by, row) === null ? [] : [answers.confidenceInWords(by, row)];
  return [sign(answers.columns.correct[row]), ...known].join("\u00a0");
}

// The element that outlines a part's tokens; its upper edge is stronger the less probable it is.
function outline(answers, part, at, by) {
  const { row, name } = part;
  const probability = answers.probability(by, row);
  const made = element("span", {
    class: `part ${look(answers.columns.correct[row])}${row === at ? " own" : ""}`,
    "data-known": partInWords(answers, part, by), title: `${name}: ${answers.outcome(row)}`,
  });
  if (probability !== null) made.style.setProperty("--doubt", `${100 * (1 - probability)}%`);
  return made;
}

function partsTable(answers, at, state) {
  const parts = answers.parts.of(at);
  if (!parts.length) return [];
  const pointed = answers.parts.pointed(at);
  const { correct, prediction } = answers.columns;
  const row = (part, place) => {
    const { row: own, name, start } = part;
    const shares = parts.slice(0, place).some((other) => other.end > start)
      || parts.slice(place + 1).some((other) => other.start < part.end);
    return element("tr", { class: own === at ? "by" : null },
      element("th", { scope: "row" }, element("a", {
        href: address({ ...state, answer: answers.name[own] }, answers) }, visible(name))),
      element("td", { class: "text" }, quoted(prediction[own] || "(empty)", state.find)),
      element("td", {}, verdict(correct[own], answers.outcome(own)), ` ${answers.outcome(own)}`),
      element("td", {}, answers.confidenceInWords(state.by, own)),
      element("td", {}, [pointed === part ? "peak window" : "", shares ? "shares a token" : ""]
        .filter((one) => one).join(", ")));
  };
  return [fold("parts", `Parts of this answer (${grouped(parts.length)})`, () =>
    element("table", { class: "elsewhere parts" },
      element("caption", {}, "Each part with its verdict and its confidence by the chosen estimator"),
      headings("Part", "Judged", "Verdict", "Confidence", "Tokens"),
      element("tbody", {}, ...parts.map(row))))];
}
