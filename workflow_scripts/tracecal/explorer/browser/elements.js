// Builds the page's elements; every text is inserted as text, never as HTML.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Characters that are invisible or reorder what follows; they are shown by their code.
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

function visible(text) {
  return text.replace(UNSEEN, (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// A text in its own direction, with every occurrence of `sought` marked.
function quoted(text, sought = "") {
  return element("bdi", {}, ...marked(visible(text), sought ? [[sought, "hit"]] : []));
}

// A text in pieces: what matches one of [[words, class], ...], in any case, is in a <mark>.
function marked(text, wanted) {
  const lower = text.toLowerCase();
  // Some letters change their length with their case, which would shift the places.
  const spans = lower.length !== text.length ? [] : wanted.flatMap(([words, look]) =>
    places(lower, words.trim().toLowerCase()).map((from) => [from, from + words.trim().length, look]));
  const pieces = [];
  let done = 0;
  for (const [from, to, look] of spans.sort((a, b) => a[0] - b[0] || b[1] - a[1])) {
    if (from < done) continue;
    pieces.push(text.slice(done, from), element("mark", { class: look }, text.slice(from, to)));
    done = to;
  }
  return [...pieces, text.slice(done)];
}

function places(text, words) {
  const found = [];
  for (let at = words ? text.indexOf(words) : -1; at >= 0; at = text.indexOf(words, at + words.length)) {
    found.push(at);
  }
  return found;
}

function number(value, digits) {
  return value === null ? "–" : value.toFixed(digits);
}

function significant(value) {
  if (value === null) return "–";
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(2) : String(value);
}

function grouped(count) {
  return count.toLocaleString("en");
}
