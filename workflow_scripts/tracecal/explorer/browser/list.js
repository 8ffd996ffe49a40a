// The list: only the rows in sight are in the page, however many there are.

const ROW = 58;
const BEYOND = 6;

class List {
  constructor(answers, choose) {
    this.answers = answers;
    this.box = document.getElementById("list");
    this.rows = document.getElementById("rows");
    this.chosen = [];
    this.box.addEventListener("scroll", () => this.draw());
    addEventListener("resize", () => this.draw());
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest("[data-place]");
      if (row) choose(this.chosen[row.dataset.place]);
    });
    document.addEventListener("keydown", (event) => {
      const to = event.ctrlKey || event.metaKey ? undefined : this.reached(event);
      if (to === undefined || !this.chosen.length) return;
      event.preventDefault();
      choose(this.chosen[Math.max(0, Math.min(this.chosen.length - 1, to))]);
    });
  }

  // The place that a key leads to; undefined for any other key. Arrows lead up and down wherever
  // the focus is, but in a control that uses them itself.
  reached({ key, target }) {
    const arrow = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (arrow) {
      const own = target.matches("select, textarea, input:not([type=search])");
      return own ? undefined : this.place + arrow;
    }
    if (!this.box.contains(target) && target !== document.body) return undefined;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    return {
      PageUp: this.place - page, PageDown: this.place + page, Home: 0, End: this.chosen.length - 1,
    }[key];
  }

  show(chosen, state) {
    this.chosen = chosen;
    this.state = state;
    this.box.scrollTop = 0;
    this.rows.style.height = `${chosen.length * ROW}px`;
  }

  select(at) {
    this.place = this.chosen.indexOf(at);
    const top = this.place * ROW;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight) this.box.scrollTop = top + ROW - clientHeight;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - BEYOND);
    const last = Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + BEYOND;
    const places = this.chosen.slice(first, last).map((at, offset) => this.row(at, first + offset));
    // The chosen row stays, out of sight too: assistive technology learns of it by its id.
    if (this.place >= last) places.push(this.row(this.chosen[this.place], this.place));
    else if (this.place >= 0 && this.place < first) {
      places.unshift(this.row(this.chosen[this.place], this.place));
    }
    this.rows.replaceChildren(...places);
    if (this.place >= 0) this.box.setAttribute("aria-activedescendant", `row-${this.place}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  // Only what the filters leave open.
  where(at) {
    const open = ["task", "model"].filter((which) => !this.state[which]
      && this.answers.named[which].length > 1);
    return open.map((which) => this.answers.label(which, at)).join(" · ");
  }

  row(at, place) {
    const { answers } = this;
    const { correct, prediction } = answers.columns;
    const made = element("div", {
      id: `row-${place}`, class: "row", role: "option", "data-place": place,
      "aria-selected": place === this.place, "aria-posinset": place + 1,
      "aria-setsize": this.chosen.length,
    },
    element("span", { class: "confidence" }, answers.confidenceInWords(this.state.by, at)),
    verdict(correct[at], answers.outcome(at)),
    element("span", { class: "given" }, quoted(prediction[at] || "(empty)", this.state.find)),
    element("span", { class: "asked" }, ...asked(answers, at, this.state.find)),
    element("span", { class: "where" }, this.where(at)));
    made.style.top = `${place * ROW}px`;
    return made;
  }
}

// The question, or else the answer's id; of a part its name, too.
function asked(answers, at, sought = "") {
  const part = answers.parts.name(at);
  return [...(part === null ? [] : [element("b", {}, quoted(part)), " · "]),
    quoted(answers.columns.question[at] || answers.columns.example_id[at], sought)];
}

function verdict(correct, words) {
  const mark = element("span", { class: look(correct, words), title: words, role: "img",
    "aria-label": words });
  mark.append(sign(correct, words));
  return mark;
}

// Of an answer that may have no label, or one that says so of whoever looked at it.
function sign(correct, words = "") {
  return correct === null ? (words === UNSURE ? "?" : "·") : correct ? "✓" : "✗";
}

function look(correct, words = "") {
  return correct === null ? (words === UNSURE ? "unsure" : "unlabelled") : correct ? "correct" : "wrong";
}
