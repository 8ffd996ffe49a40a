"use strict";
// The data: columns, one entry per answer; everywhere else an answer is its number.

async function unpack() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Of a wrong answer, by the kind of its error; what `global` means stands beside it.
const KINDS = { entity: "in a name", number: "in a number", claim: "in its claim", global: "as a whole" };
const AS_A_WHOLE = "it says nothing, repeats itself, does not answer, or is about something else";
// Tokens that only begin or end a text, such as <|im_end|> and </s>.
const SPECIAL = /^<[|｜][^<>]+[|｜]>$|^<\/?(s|bos|eos|pad|unk|(start|end)_of_turn)>$/;

class Answers {
  constructor(data) {
    Object.assign(this, data);
    // The `Labelling` where verdicts are given here.
    this.labels = null;
    this.columns = data.answers;
    this.parts = new Parts(this);
    this.count = this.columns.example_id.length;
    this.estimator = new Map(data.estimators.map((one) => [one.id, one]));
    this.kinds = [...new Set(this.columns.error_kind)].filter((kind) => kind !== null).sort();
    this.name = Array.from({ length: this.count }, (_, at) =>
      [this.slug("model", at), this.slug("task", at), this.columns.example_id[at]].join("/"));
    this.languages = [...new Set(this.columns.language)].filter((one) => one).sort();
    this.byName = new Map(this.name.map((name, at) => [name, at]));
    this.judged = this.columns.correct.some((one) => one !== null);
    // Estimators with a probability for any answer; the others have only scores. A page for verdicts
    // is told of them, as it hides probabilities.
    this.calibrated = new Set(data.labelling?.calibrated ?? data.estimators.map(({ id }) => id)
      .filter((id) => this.columns.probability[id].some((one) => one !== null)));
  }

  slug(which, at) {
    return this.named[which][this.columns[which][at]].id;
  }

  label(which, at) {
    return this.named[which][this.columns[which][at]].label;
  }

  // Whether these are answers of a file rather than of a run, which has splits.
  get ofFile() {
    return this.split === null;
  }

  // Null too where there is no estimator at all.
  probability(estimator, at) {
    return this.columns.probability[estimator]?.[at] ?? null;
  }

  // What answers are ordered by: the probability, or the score of an estimator without any.
  confidence(estimator, at) {
    if (this.calibrated.has(estimator)) return this.probability(estimator, at);
    return this.columns.score[estimator]?.[at] ?? null;
  }

  confidenceInWords(estimator, at) {
    return this.calibrated.has(estimator) ? number(this.probability(estimator, at), 3)
      : significant(this.confidence(estimator, at));
  }

  // What the search looks through; the prompt is left out, as its examples are in all answers.
  text(at) {
    this.texts ??= new Array(this.count);
    const { question, prediction, references, tokens, example_id } = this.columns;
    return (this.texts[at] ??= [
      question[at], prediction[at], references[at].join("\n"), tokens[at].join(""), example_id[at],
    ].join("\n").toLocaleLowerCase());
  }

  outcome(at) {
    if (this.columns.correct[at] === null) return this.labels?.outcome(at) ?? "Not labelled";
    if (this.columns.correct[at]) return "Correct";
    const kind = this.columns.error_kind[at];
    return kind === null ? "Wrong" : `Wrong ${KINDS[kind] ?? `(${kind})`}`;
  }

  // The text of an answer, of which a file may hold no tokens, without the tokens that only end it.
  written(at) {
    const { tokens } = this.parts.trace(at);
    return tokens.map((one) => (SPECIAL.test(one) ? "" : one)).join("") || this.columns.prediction[at];
  }

  passage(at) {
    const place = this.columns.context[at];
    return place === null ? null : this.contexts[place];
  }

  // The mean entropy (nats) of the peak window; null where entropies are not known.
  peak(at, { peak: start, entropy } = { peak: this.columns.peak[at], entropy: this.columns.entropy[at] }) {
    if (start === null) return null;
    const values = entropy.slice(start, start + this.window);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  // A key shared by the answers to one question, across models, wordings and languages.
  group(at) {
    return `${this.columns.task[at]}\n${this.columns.group_id[at]}`;
  }

  // The answers to the same question; of a part, the same part of them.
  siblings(at) {
    if (!this.families) {
      this.families = new Map();
      for (let one = 0; one < this.count; one++) {
        const key = this.group(one);
        if (!this.families.has(key)) this.families.set(key, []);
        this.families.get(key).push(one);
      }
    }
    return this.families.get(this.group(at)).filter((one) =>
      one !== at && this.parts.name(one) === this.parts.name(at));
  }

  isConfidentError(at, { by, threshold }) {
    const probability = this.probability(by, at);
    return this.columns.correct[at] === false && probability !== null && probability >= threshold;
  }

  // The least confident wrong answer and the most confident correct one of a model on a task, at
  // either side of the threshold; null where one is lacking. Both are whole answers, and the correct
  // one has no part that is wrong.
  contrast(model, task, { by, threshold }) {
    const found = {};
    for (let at = 0; at < this.count; at++) {
      const [p, correct] = [this.probability(by, at), this.columns.correct[at]];
      if (p === null || correct === null || p >= threshold !== correct) continue;
      if (this.slug("model", at) !== model || this.slug("task", at) !== task) continue;
      if (this.parts.name(at) !== null || (correct && this.parts.areWrong(at))) continue;
      const side = correct ? "trusted" : "caught";
      const held = found[side] === undefined ? null : this.probability(by, found[side]);
      if (held === null || (correct ? p > held : p < held)) found[side] = at;
    }
    return found.caught === undefined || found.trusted === undefined ? null : found;
  }

  // What the page begins with: one model and one task, the main model and the first task where there
  // is a pair to open on, and that pair. A model or task that is the only one is not named.
  beginning(state) {
    const ids = (which) => this.named[which].map(({ id }) => id);
    const models = [...ids("model")].sort((a, b) => (b === this.main) - (a === this.main));
    const places = models.flatMap((model) => ids("task").map((task) => [model, task]));
    const pairs = places.map(([model, task]) => this.contrast(model, task, state));
    const first = Math.max(0, pairs.findIndex((pair) => pair));
    const [model = "", task = ""] = places[first] ?? [];
    const named = (which, id) => (this.named[which].length > 1 ? id : "");
    return { model: named("model", model), task: named("task", task), pair: pairs[first] ?? null };
  }

  // What an order sorts by, largest first; null comes last.
  rank({ order, by, versus }) {
    const { tokens } = this.columns;
    const confidence = (at) => this.confidence(by, at);
    const gap = (one, other) => (one === null || other === null ? null : Math.abs(one - other));
    return {
      down: confidence,
      up: (at) => (confidence(at) === null ? null : -confidence(at)),
      disagreement: (at) => gap(this.probability(by, at), this.probability(versus, at)),
      long: (at) => tokens[at].length,
      short: (at) => -tokens[at].length,
      peak: (at) => this.peak(at),
    }[order];
  }

  // The answers that the filters let through, in no particular order.
  filtered(state) {
    const { model, task, language, outcome, find } = state;
    const sought = find.trim().toLocaleLowerCase();
    const { correct, error_kind } = this.columns;
    const judged = {
      "": () => true,
      correct: (at) => correct[at],
      wrong: (at) => correct[at] === false,
      unlabelled: (at) => correct[at] === null,
      [CONFIDENT]: (at) => this.isConfidentError(at, state),
      [NOTED]: (at) => noteOf(this, at) !== "",
      [POINTED]: (at) => this.parts.aim(at) === POINTED,
      [MISSED]: (at) => this.parts.aim(at) === MISSED,
    }[outcome] ?? ((at) => correct[at] === false && error_kind[at] === outcome.slice(6));
    return Array.from({ length: this.count }, (_, at) => at).filter((at) =>
      (!model || this.slug("model", at) === model) &&
      (!task || this.slug("task", at) === task) &&
      (!language || this.columns.language[at] === language) &&
      judged(at) &&
      (!sought || this.text(at).includes(sought)));
  }

  // The same in the state's order.
  chosen(state) {
    const rank = this.rank(state);
    const keys = new Map(this.filtered(state).map((at) => [at, rank(at)]));
    return [...keys.keys()].sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return y - x || a - b;
    });
  }
}
