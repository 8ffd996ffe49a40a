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
  for (const which of ["model", "task"]) {
    document.getElementById(which).closest("label").hidden = answers.named[which].length < 2;
  }
  fill("outcome", "all", outcomes(answers));
  offerScores(answers, leading(answers));
  const { count, total } = answers;
  const whose = answers.ofFile ? "file" : "run";
  const kind = (answers.ofFile ? "answers" : "evaluated answers")
    + (answers.parts.families.size ? " and parts of answers" : "");
  document.getElementById("extent").textContent = count === total
    ? `All ${grouped(total)} ${kind} of the ${whose}.`
    : `${grouped(count)} of the ${whose}'s ${grouped(total)} ${kind}, sampled at random: ` +
      "equally many from each model and task, where there are enough.";
  // Without labels there is nothing to compare confidence with.
  document.getElementById("overview").hidden = !answers.judged || !answers.calibrated.size;
  document.getElementById("confident-errors").hidden = !answers.judged || !answers.calibrated.size;
  for (const id of ["by", "versus"]) {
    document.getElementById(id).closest("label").hidden ||= !answers.estimators.length;
  }
  // On a small screen the answer comes first.
  if (matchMedia("(max-width: 46rem)").matches) {
    for (const id of ["filters", "overview"]) document.getElementById(id).open = false;
  }
}

const FEW = 5;
const MORE = "more";

// The scores to choose from at first: the one in use, TRACE's, and what follows.
function leading(answers) {
  const ids = answers.estimators.map((one) => one.id);
  const first = [defaultsFor(answers).by, "trace_plus", "trace"].filter((id) => ids.includes(id));
  return [...new Set([...first, ...ids])].slice(0, FEW);
}

// The scores `ids` to choose from, and the others behind *more*.
function offerScores(answers, ids) {
  const option = (value, label) => element("option", { value }, label);
  for (const control of ["by", "versus"]) {
    const groups = Object.entries(ROLES).map(([role, label]) => element("optgroup", { label },
      ...answers.estimators.filter((one) => one.role === role && ids.includes(one.id))
        .map((one) => option(one.id, one.label))));
    document.getElementById(control).replaceChildren(
      ...groups.filter((group) => group.childElementCount),
      ...(ids.length < answers.estimators.length ? [option(MORE, "more…")] : []));
  }
}

// Browsers refuse to change the address many times a second, as a key that is held down would.
const PAUSE = 250;

function writeAddress(link) {
  try {
    history.replaceState(null, "", link);
  } catch {
    // Some frames have no address of their own; everything else works there.
  }
}

function counted(chosen, answers, state) {
  if (!chosen.length) return "No answers";
  const count = `${grouped(chosen.length)} answer${chosen.length > 1 ? "s" : ""}`;
  const members = chosen.filter((at) => answers.columns.correct[at] !== null)
    .map((at) => ({ correct: answers.columns.correct[at], group: answers.group(at) }));
  if ([POINTED, MISSED].includes(state.outcome)) {
    const either = [POINTED, MISSED].flatMap((outcome) => answers.filtered({ ...state, outcome }));
    return `${count} of ${grouped(either.length)} with right and wrong parts`;
  }
  if (state.outcome || !members.length) return count;
  if (members.length < chosen.length) {
    return `${count}, ${shareInWords(members, ({ correct }) => correct, `of ${grouped(members.length)} labelled correct`, 0)}`;
  }
  return `${count}, ${shareInWords(members, ({ correct }) => correct, "correct", 0)}`;
}

function start(answers) {
  const controls = ["model", "task", "language", "outcome", "by", "order", "versus", "find"];
  const control = (id) => document.getElementById(id);
  let state = readState(answers);
  let chosen = [];
  let writing;
  // The pair that the page opens on, until something is chosen.
  let opening = null;

  const list = new List(answers, (at) => change({ answer: answers.name[at] }));
  const overview = new Overview(answers, (threshold) => change({ threshold }));
  if (answers.labelling) {
    answers.labels = new Labelling(answers, () => change({ answer: "", find: "" }));
    control("judging").hidden = false;
  }

  function change(changes) {
    state = { ...state, ...changes };
    if (!Object.keys(changes).every((key) => ["shade", "threshold"].includes(key))) opening = null;
    clearTimeout(writing);
    if (Object.keys(changes).length) writing = setTimeout(writeAddress, PAUSE, address(state, answers));
    const filtered = !Object.keys(changes).length || controls.some((key) => key in changes);
    if (filtered || (state.outcome === CONFIDENT && "threshold" in changes)) choose();
    if (filtered || "threshold" in changes) {
      // Over all outcomes, as a single one leaves nothing to compare.
      overview.show(answers.filtered({ ...state, outcome: "" }), state);
    }
    if (Object.keys(changes).join() !== "threshold" || state.outcome === CONFIDENT || opening) showChosen();
  }

  function choose() {
    if (["by", "versus"].some((key) => !control(key).querySelector(`[value="${state[key]}"]`))) offerAll();
    for (const key of controls) control(key).value = state[key];
    control("rival").hidden = state.order !== "disagreement";
    control("confident-errors").setAttribute("aria-pressed", state.outcome === CONFIDENT);
    chosen = answers.labels?.listed ?? answers.chosen(state);
    control("count").textContent = counted(chosen, answers, state);
    list.show(chosen, state);
  }

  function showChosen() {
    document.querySelector(`#shade [value="${state.shade}"]`).checked = true;
    if (opening) {
      list.select(undefined);
      showOpening(answers, opening, state, toggle);
      return;
    }
    const wanted = answers.byName.get(state.answer);
    const at = chosen.includes(wanted) ? wanted : chosen[0];
    list.select(at);
    if (at === undefined) showNothing();
    else showAnswer(answers, at, state);
  }

  function offerAll() {
    offerScores(answers, answers.estimators.map((one) => one.id));
    for (const key of ["by", "versus"]) control(key).value = state[key];
  }

  for (const key of controls) {
    control(key).addEventListener("input", () => (control(key).value === MORE
      ? offerAll() : change({ [key]: control(key).value, answer: "" })));
  }
  control("shade").addEventListener("change", ({ target }) => change({ shade: target.value }));
  control("controls").addEventListener("submit", (event) => event.preventDefault());
  const toggle = () => change(state.outcome === CONFIDENT
    ? { outcome: "", answer: state.answer }
    : { outcome: CONFIDENT, order: "down", answer: "" });
  control("csv").addEventListener("click", () => save("answers.csv", asCsv(answers, chosen)));
  control("jsonl").addEventListener("click", () => save("answers.jsonl", asJsonLines(answers, chosen)));
  control("confident-errors").addEventListener("click", toggle);
  const everything = () => change({ ...defaultsFor(answers), shade: state.shade });
  control("everything").addEventListener("click", everything);

  document.addEventListener("keydown", (event) => {
    const writes = event.target.matches("select, textarea, input[type=search]");
    // A key that is held down must not judge one answer after the other.
    if (writes || (answers.labels && event.repeat) || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = answers.labels ? answers.labels.acts[event.key] : {
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
  if (location.hash.length < 2 && !answers.labels) {
    const { pair, ...where } = answers.beginning(state);
    state = { ...state, ...where };
    opening = pair;
  }
  change({});
}

unpack().then((data) => {
  const answers = new Answers(data);
  fillControls(answers);
  start(answers);
}).catch((error) => {
  document.getElementById("answer").replaceChildren(element("p", { class: "empty", role: "alert" },
    `The answers cannot be shown: ${error.message}. A browser of 2023 or newer is needed.`));
});
