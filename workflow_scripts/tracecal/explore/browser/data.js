"use strict";
// The data: columns, one entry per answer; everywhere else an answer is its number.

async function unpack() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
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

  // The answers that a state of the controls asks for, in its order; undefined confidence last.
  chosen({ model, task, outcome, by, order, find }) {
    const sought = find.trim().toLocaleLowerCase();
    const { correct, error_kind } = this.columns;
    const wanted = (at) =>
      (!model || this.slug("model", at) === model) &&
      (!task || this.slug("task", at) === task) &&
      (!outcome || (outcome === "correct") === correct[at]) &&
      (!outcome.startsWith("wrong-") || error_kind[at] === outcome.slice(6)) &&
      (!sought || this.text(at).includes(sought));
    const confidence = this.columns.probability[by];
    const sign = order === "up" ? 1 : -1;
    return Array.from({ length: this.count }, (_, at) => at).filter(wanted).sort((a, b) => {
      const [x, y] = [confidence[a], confidence[b]];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (x - y) || a - b;
    });
  }
}
