// The page: controls change the state, the state decides what is shown.

function fillControls(answers) {
  const option = ([value, label]) => element("option", { value }, label);
  const fill = (id, all, options) =>
    document.getElementById(id).replaceChildren(...[["", all], ...options].map(option));
  const named = (which) => answers.named[which].map(({ id, label }) => [id, label]);
  fill("model", "all models", named("model"));
  fill("task", "all tasks", named("task"));
  fill("outcome", "all", outcomes(answers));
  const groups = Object.entries(ROLES).map(([role, label]) => element("optgroup", { label },
    ...answers.estimators.filter((one) => one.role === role).map(({ id, label: name }) =>
      option([id, name]))));
  document.getElementById("by").replaceChildren(
    ...groups.filter((group) => group.childElementCount));
  const { count, total } = answers;
  document.getElementById("extent").textContent = count === total
    ? `All ${grouped(total)} evaluated answers of the run.`
    : `${grouped(count)} of the run's ${grouped(total)} evaluated answers, drawn by chance: ` +
      "equally many of each model and task, as far as there are so many.";
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
  const controls = ["model", "task", "outcome", "by", "order", "find"];
  const control = (id) => document.getElementById(id);
  let state = readState(answers);
  let chosen = [];
  let writing;

  const list = new List(answers, (at) => change({ answer: answers.name[at] }));

  function change(changes) {
    state = { ...state, ...changes };
    clearTimeout(writing);
    writing = setTimeout(writeAddress, PAUSE, address(state, answers));
    if (controls.some((key) => key in changes)) choose();
    showChosen();
  }

  function choose() {
    for (const key of controls) control(key).value = state[key];
    const errors = state.outcome === "wrong" && state.order === "down";
    control("confident-errors").setAttribute("aria-pressed", errors);
    chosen = answers.chosen(state);
    control("count").textContent = counted(chosen, answers, state.outcome);
    list.show(chosen, state.by);
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
  control("confident-errors").addEventListener("click", () =>
    change({ outcome: "wrong", order: "down", answer: "" }));
  const everything = () => change({ ...defaultsFor(answers), shade: state.shade });
  control("everything").addEventListener("click", everything);

  function showNothing() {
    control("answer").replaceChildren(element("p", { class: "empty" }, answers.count
      ? "No answer matches. Loosen a filter above, or show all."
      : "This run has no evaluated answers."));
  }

  addEventListener("hashchange", () => change(readState(answers)));
  change(state);
}

unpack().then((data) => {
  const answers = new Answers(data);
  fillControls(answers);
  start(answers);
}).catch((error) => {
  document.getElementById("answer").replaceChildren(element("p", { class: "empty", role: "alert" },
    `The answers cannot be shown: ${error.message}. A browser of 2023 or newer is needed.`));
});
