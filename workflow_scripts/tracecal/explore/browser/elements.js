// Building the page: every text goes in as text.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Characters that show nothing or reorder what follows stand as what they are.
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

function visible(text) {
  return text.replace(UNSEEN, (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// Text in its own direction, whatever stands around it.
function said(text) {
  return element("bdi", {}, visible(text));
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
