// The page: controls change the state, the state decides what is shown.

function fillControls(answers) {
  const option = ([value, label]) => element("option", { value }, label);
  const fill = (id, all, options) =>
    document.getElementById(id).replaceChildren(...[["", all], ...options].map(option));
  const named = (which) => answers.named[which].map(({ id, label }) => [id, label]);
  fill("model", "all models", named("model"));
  fill("task", "all tasks", named("task"));
  fill("language", "all languages", answers.languages.map((one) => [one, visible(one)]));
  document.getElementById("languages").hidden = answers.languages.length < 2;
  fill("outcome", "all", outcomes(answers));
  for (const id of ["by", "versus"]) {
    const groups = Object.entries(ROLES).map(([role, label]) => element("optgroup", { label },
      ...answers.estimators.filter((one) => one.role === role).map((one) =>
        option([one.id, one.label]))));
    document.getElementById(id).replaceChildren(
      ...groups.filter((group) => group.childElementCount));
  }
  const { count, total } = answers;
  document.getElementById("extent").textContent = count === total
    ? `All ${grouped(total)} evaluated answers of the run.`
    : `${grouped(count)} of the run's ${grouped(total)} evaluated answers, drawn by chance: ` +
      "equally many of each model and task, as far as there are so many.";
  // On a small screen the answer comes first.
  if (matchMedia("(max-width: 46rem)").matches) {
    for (const id of ["filters", "overview"]) document.getElementById(id).open = false;
  }
}

// Browsers refuse to change the address many times a second, as a key that is held down would.
const PAUSE = 250;

function writeAddress(link) {
  try {
    history.replaceState(null, "", link);
  } catch {
    // Some frames have no address of their own; all else works there too.
  }
}

function counted(chosen, answers, outcome) {
  if (!chosen.length) return "No answers";
  const count = `${grouped(chosen.length)} answer${chosen.length > 1 ? "s" : ""}`;
  if (outcome) return count;
  const right = chosen.filter((at) => answers.columns.correct[at]).length;
  return `${count}, ${(100 * right / chosen.length).toFixed(0)} % correct`;
}

function start(answers) {
  const controls = ["model", "task", "language", "outcome", "by", "order", "versus", "find"];
  const control = (id) => document.getElementById(id);
  let state = readState(answers);
  let chosen = [];
  let writing;

  const list = new List(answers, (at) => change({ answer: answers.name[at] }));
  const overview = new Overview(answers, (threshold) => change({ threshold }));

  function change(changes) {
    state = { ...state, ...changes };
    clearTimeout(writing);
    writing = setTimeout(writeAddress, PAUSE, address(state, answers));
    const filtered = controls.some((key) => key in changes);
    if (filtered || (state.outcome === CONFIDENT && "threshold" in changes)) choose();
    if (filtered || "threshold" in changes) {
      // Over all outcomes, as a single one leaves nothing to compare.
      overview.show(answers.filtered({ ...state, outcome: "" }), state);
    }
    if (Object.keys(changes).join() !== "threshold" || state.outcome === CONFIDENT) showChosen();
  }

  function choose() {
    for (const key of controls) control(key).value = state[key];
    control("rival").hidden = state.order !== "disagreement";
    control("confident-errors").setAttribute("aria-pressed", state.outcome === CONFIDENT);
    chosen = answers.chosen(state);
    control("count").textContent = counted(chosen, answers, state.outcome);
    list.show(chosen, state);
  }

  function showChosen() {
    const wanted = answers.byName.get(state.answer);
    const at = chosen.includes(wanted) ? wanted : chosen[0];
    list.select(at);
    if (at === undefined) showNothing();
    else showAnswer(answers, at, state);
    document.querySelector(`#shade [value="${state.shade}"]`).checked = true;
  }

  for (const key of controls) {
    control(key).addEventListener("input", () => change({ [key]: control(key).value, answer: "" }));
  }
  control("shade").addEventListener("change", ({ target }) => change({ shade: target.value }));
  control("controls").addEventListener("submit", (event) => event.preventDefault());
  const toggle = () => change(state.outcome === CONFIDENT
    ? { outcome: "", answer: state.answer }
    : { outcome: CONFIDENT, order: "down", answer: "" });
  control("confident-errors").addEventListener("click", toggle);
  const everything = () => change({ ...defaultsFor(answers), shade: state.shade });
  control("everything").addEventListener("click", everything);

  document.addEventListener("keydown", (event) => {
    const writes = event.target.matches("select, input[type=search]");
    if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      "/": () => control("find").focus(),
      e: toggle,
      c: () => document.querySelector("#answer .copy")?.click(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  function showNothing() {
    control("answer").replaceChildren(element("p", { class: "empty" }, answers.count
      ? "No answer matches. Loosen a filter above, or show all."
      : "This run has no evaluated answers."));
  }

  addEventListener("hashchange", () => change(readState(answers)));
  // The page opens on a confident error, where there is one, of the main study's model if it can.
  const errors = location.hash.length > 1 ? []
    : answers.chosen(state).filter((at) => answers.isConfidentError(at, state));
  const first = errors.find((at) => answers.slug("model", at) === answers.main) ?? errors[0];
  change(first === undefined ? state : { ...state, answer: answers.name[first] });
}

unpack().then((data) => {
  const answers = new Answers(data);
  fillControls(answers);
  start(answers);
}).catch((error) => {
  document.getElementById("answer").replaceChildren(element("p", { class: "empty", role: "alert" },
    `The answers cannot be shown: ${error.message}. A browser of 2023 or newer is needed.`));
});
