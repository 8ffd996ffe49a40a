// Labelling: the page as one gives verdicts. What the server hides of an answer comes with the reply
// to its verdict; the server says which answer is next.

const UNSURE = "Unsure";
const HIDDEN = ["surprisal", "entropy", "peak"];
const OF_ESTIMATORS = ["probability", "held_out", "score"];

class Labelling {
  // `show(at)` shows an answer and lists those with verdicts.
  constructor(answers, show) {
    this.answers = answers;
    this.show = show;
    Object.assign(this, answers.labelling);
    this.busy = false;
    this.begun = performance.now();
    this.given = 0; // verdicts since then
    document.body.classList.add("labelling");
    this.acts = {
      r: () => this.judge(true), w: () => this.judge(false), u: () => this.judge(null),
      z: () => this.undo(), n: () => document.querySelector("#answer .note textarea")?.focus(),
    };
    this.verdicts = document.getElementById("verdicts"); // shown beside the answer
    const buttons = [...this.verdicts.querySelectorAll("button")];
    for (const button of buttons) {
      button.addEventListener("click", () => this.acts[button.dataset.key]());
    }
    document.getElementById("keys").replaceChildren(...buttons.flatMap((button) => [
        element("kbd", {}, button.dataset.key), ` ${button.textContent} · `]),
      element("kbd", {}, "↑"), " ", element("kbd", {}, "↓"), " look at earlier ones");
    this.tell();
  }

  // The next answer, then those with a verdict, the last one first.
  get listed() {
    return [...(this.next === null ? [] : [this.next]), ...this.order.toReversed()];
  }

  tell(problem = "") {
    const told = document.getElementById("progress");
    told.textContent = problem || (this.next === null
      ? `Done: ${this.said}. The verdicts are in ${this.file}.` : `${this.said}${this.rate()}`);
    told.classList.toggle("wrong", problem !== "");
    const bar = document.getElementById("done");
    [bar.max, bar.value, bar.hidden] = [this.answers.count, this.order.length, this.next === null];
    document.getElementById("then").hidden = this.next !== null;
    document.getElementById("command").textContent = this.then;
  }

  // From the third verdict on.
  rate() {
    if (this.given < 3) return "";
    return ` · ${(60_000 * this.given / (performance.now() - this.begun)).toFixed(1)} a minute`;
  }

  // What was just judged, and what its scores say.
  recall(at) {
    const { answers } = this;
    const told = document.getElementById("last");
    if (at === undefined) return told.replaceChildren();
    const outcome = answers.outcome(at);
    const by = defaultsFor(answers).by;
    const known = answers.confidence(by, at) === null ? [] : [
      answers.calibrated.has(by) ? ", probability " : ", score ",
      element("b", {}, answers.confidenceInWords(by, at)), ` by ${answers.estimator.get(by).label}`];
    const text = answers.columns.prediction[at];
    told.replaceChildren("Just judged: ", verdict(answers.columns.correct[at], outcome), ` ${outcome}`,
      ...known, " · ", quoted(text.length > 60 ? `${text.slice(0, 60)}…` : text));
  }

  async ask(what, body) {
    if (this.busy) return null;
    this.busy = true;
    try {
      const reply = await fetch(what, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
      });
      if (reply.ok) return await reply.json();
      this.tell(`Not stored: ${await reply.text()}`);
    } catch {
      this.tell("Not stored: 'tracecal label' does not answer; start it again and open its new address");
    } finally {
      this.busy = false;
    }
    return null;
  }

  async judge(correct) {
    const at = this.next;
    if (at === null) return;
    const note = this.notes[at] ?? "";
    const reply = await this.ask("verdict", { answer: at, correct, note });
    if (!reply) return;
    this.fill(at, correct, reply.revealed);
    this.order.push(at);
    this.given += 1;
    this.goOn(reply, at);
  }

  async undo() {
    const reply = await this.ask("undo", {});
    if (!reply || reply.taken === null) return;
    this.fill(reply.taken, null, null);
    this.order = this.order.filter((at) => at !== reply.taken);
    this.given = Math.max(0, this.given - 1);
    this.goOn(reply);
  }

  goOn({ next, said }, judged) {
    Object.assign(this, { next, said });
    this.tell();
    this.recall(judged);
    this.show();
  }

  fill(at, correct, revealed) {
    const { columns } = this.answers;
    columns.correct[at] = correct;
    for (const name of HIDDEN) columns[name][at] = revealed?.[name] ?? null;
    for (const name of OF_ESTIMATORS) {
      for (const id of Object.keys(columns[name])) columns[name][id][at] = revealed?.[name][id] ?? null;
    }
  }

  hides(at) {
    return !this.order.includes(at);
  }

  outcome(at) {
    return this.hides(at) ? "Not judged yet" : UNSURE;
  }
}
