// Notes on answers: kept by the reader's browser, never in the page; exported with the answers.

const kept = new Map();

function noteKey(answers, at) {
  return `note:${answers.run}:${answers.name[at]}`;
}

// A frame without an origin of its own has no storage: notes last as long as the page is open.
function noteOf(answers, at) {
  const key = noteKey(answers, at);
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return kept.get(key) ?? "";
  }
}

function setNote(answers, at, text) {
  const key = noteKey(answers, at);
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    kept.set(key, text);
  }
}

function noteField(answers, at) {
  const { labels } = answers;
  const field = element("textarea", { rows: 1, placeholder: labels
    ? "stored with the verdict; Escape leaves it" : "kept in this browser, exported with the list" });
  field.value = labels ? labels.notes[at] ?? "" : noteOf(answers, at);
  field.readOnly = Boolean(labels) && !labels.hides(at);
  field.addEventListener("input", () => {
    if (labels) labels.notes[at] = field.value;
    else setNote(answers, at, field.value.trim());
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.blur();
  });
  return element("label", { class: "note" }, "Note ", field);
}
