// Shares of answers with their uncertainty, and how well confidence ranks.

const Z = 1.959964; // of a 95 % interval

// The Wilson interval of the share of `members` that are `hit`. Answers to one question are
// not independent: the number of answers is replaced by the effective one, that of independent
// answers whose share varies as much as this one does over groups (Korn and Graubard 1998).
function interval(members, hit) {
  const n = members.length;
  if (!n) return [0, 1];
  const share = members.filter(hit).length / n;
  const groups = new Map();
  for (const one of members) {
    groups.set(one.group, (groups.get(one.group) ?? 0) + (hit(one) ? 1 : 0) - share);
  }
  const squares = [...groups.values()].reduce((sum, one) => sum + one * one, 0);
  const variance = squares / (n * n) * groups.size / Math.max(1, groups.size - 1);
  const effective = variance > 0 ? Math.min(n, share * (1 - share) / variance) : groups.size;
  const middle = (share + Z * Z / (2 * effective)) / (1 + Z * Z / effective);
  const half = Z / (1 + Z * Z / effective)
    * Math.sqrt(share * (1 - share) / effective + Z * Z / (4 * effective * effective));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// "12.3 % wrong (95 % interval 5 to 24 %)"
function shareInWords(members, hit, word, digits = 1) {
  const percent = (share, places) => (100 * share).toFixed(places);
  const [low, high] = interval(members, hit);
  const share = members.filter(hit).length / members.length;
  return `${percent(share, digits)}\u00a0% ${word} (95\u00a0% interval ${percent(low, 0)} to ${percent(high, 0)}\u00a0%)`;
}

// The chance that a correct answer has more confidence than a wrong one; ties count half. `judged`
// is sorted by confidence; null unless there are both correct and wrong answers.
function auroc(judged) {
  let [above, wins] = [0, 0];
  const correct = judged.filter((one) => one.correct).length;
  for (let start = 0, end; start < judged.length; start = end) {
    for (end = start; end < judged.length && judged[end].p === judged[start].p;) end++;
    const tied = judged.slice(start, end).filter((one) => one.correct).length;
    wins += (end - start - tied) * (above + tied / 2);
    above += tied;
  }
  const pairs = correct * (judged.length - correct);
  return pairs ? wins / pairs : null;
}
