// Labelling: the page as one gives verdicts. What the server hides of an answer comes with the reply
// to its verdict; the server says which answer is next.

const HIDDEN = ["surprisal", "entropy", "peak"];
const OF_ESTIMATORS = ["probability", "held_out", "score"];

class Labelling {
  // `show(at)` shows an answer and lists those with verdicts.
  constructor(answers, show) {
    this.answers = answers;
    this.show = show;
    Object.assign(this, answers.labelling);
    this.busy = false;
    document.body.classList.add("labelling");
    this.acts = {
      r: () => this.judge(true), w: () => this.judge(false), u: () => this.judge(null),
      z: () => this.undo(), n: () => document.querySelector("#answer .note textarea")?.focus(),
    };
    for (const button of document.querySelectorAll("#judging button")) {
      button.addEventListener("click", () => this.acts[button.dataset.key]());
    }
    document.getElementById("keys").replaceChildren(...Array.from(
      document.querySelectorAll("#judging button"), (button) => [
        element("kbd", {}, button.dataset.key), ` ${button.textContent} · `]).flat(),
      element("kbd", {}, "↑"), " ", element("kbd", {}, "↓"), " look at earlier ones");
    this.tell();
  }

  // The next answer, then those with a verdict, the last one first.
  get listed() {
    return [...(this.next === null ? [] : [this.next]), ...this.order.toReversed()];
  }

  tell(problem = "") {
    document.getElementById("progress").textContent = problem || (this.next === null
      ? `Done: ${this.said}. The verdicts are in ${this.file}.` : this.said);
    document.getElementById("progress").classList.toggle("wrong", problem !== "");
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
    this.goOn(reply);
  }

  async undo() {
    const reply = await this.ask("undo", {});
    if (!reply || reply.taken === null) return;
    this.fill(reply.taken, null, null);
    this.order = this.order.filter((at) => at !== reply.taken);
    this.goOn(reply);
  }

  goOn({ next, said }) {
    Object.assign(this, { next, said });
    this.tell();
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
    return this.hides(at) ? "No verdict yet" : "Unsure";
  }
}
