"use strict";
// The data: columns, one entry per answer; everywhere else an answer is its number.

async function unpack() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Answers {
  constructor(data) {
    Object.assign(this, data);
    this.columns = data.answers;
    this.count = this.columns.example_id.length;
    this.estimator = new Map(data.estimators.map((one) => [one.id, one]));
    this.kinds = [...new Set(this.columns.error_kind)].filter((kind) => kind !== null).sort();
    this.name = Array.from({ length: this.count }, (_, at) =>
      [this.slug("model", at), this.slug("task", at), this.columns.example_id[at]].join("/"));
    this.languages = [...new Set(this.columns.language)].filter((one) => one).sort();
    this.byName = new Map(this.name.map((name, at) => [name, at]));
  }

  slug(which, at) {
    return this.named[which][this.columns[which][at]].id;
  }

  label(which, at) {
    return this.named[which][this.columns[which][at]].label;
  }

  probability(estimator, at) {
    return this.columns.probability[estimator][at];
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
    if (this.columns.correct[at]) return "Correct";
    const kind = this.columns.error_kind[at];
    return kind === null ? "Wrong" : `Wrong (${kind})`;
  }

  passage(at) {
    const place = this.columns.context[at];
    return place === null ? null : this.contexts[place];
  }

  // The mean entropy (nats) of the peak window; null where entropies are not known.
  peak(at) {
    const start = this.columns.peak[at];
    if (start === null) return null;
    const values = this.columns.entropy[at].slice(start, start + this.window);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  // The answers to the same question: by other models, in other wordings and languages.
  siblings(at) {
    const key = (one) => `${this.columns.task[one]}\n${this.columns.group_id[one]}`;
    if (!this.families) {
      this.families = new Map();
      for (let one = 0; one < this.count; one++) {
        if (!this.families.has(key(one))) this.families.set(key(one), []);
        this.families.get(key(one)).push(one);
      }
    }
    return this.families.get(key(at)).filter((one) => one !== at);
  }

  isConfidentError(at, { by, threshold }) {
    const probability = this.columns.probability[by][at];
    return !this.columns.correct[at] && probability !== null && probability >= threshold;
  }

  // What an order sorts by, largest first; null comes last.
  rank({ order, by, versus }) {
    const { probability, tokens } = this.columns;
    const confidence = (at) => probability[by][at];
    const gap = (one, other) => (one === null || other === null ? null : Math.abs(one - other));
    return {
      down: confidence,
      up: (at) => (confidence(at) === null ? null : -confidence(at)),
      disagreement: (at) => gap(confidence(at), probability[versus][at]),
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
      wrong: (at) => !correct[at],
      [CONFIDENT]: (at) => this.isConfidentError(at, state),
    }[outcome] ?? ((at) => !correct[at] && error_kind[at] === outcome.slice(6));
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
