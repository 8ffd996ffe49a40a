// The overview: how confidence and correctness go together in those answers the filters leave that
// one split held out. A mean over splits is better calibrated than the probability of any split.

const FRAME = { width: 280, height: 84, left: 30, right: 6, top: 6, bottom: 14 };
const BINS = 20;
// Of equal width, as in the metric.
const RELIABILITY_BINS = 15;

function across(share) {
  return FRAME.left + share * (FRAME.width - FRAME.left - FRAME.right);
}

function up(share) {
  return FRAME.height - FRAME.bottom - share * (FRAME.height - FRAME.top - FRAME.bottom);
}

class Overview {
  constructor(answers, setThreshold) {
    this.answers = answers;
    this.charts = Object.fromEntries(["histogram", "reliability", "coverage"].map((name) =>
      [name, document.getElementById(name)]));
    const slider = document.getElementById("threshold");
    slider.addEventListener("input", () => setThreshold(String(Number(slider.value))));
    this.draggable("histogram", (share) => share, setThreshold);
    this.draggable("coverage", (share) => {
      const place = Math.min(this.judged.length, Math.round(share * this.judged.length)) - 1;
      return place < 0 ? 1 : this.judged[place].p;
    }, setThreshold);
  }

  // A pointer on a chart chooses the threshold that belongs to its place on the horizontal axis.
  draggable(name, threshold, setThreshold) {
    const chart = this.charts[name];
    const drag = ({ clientX }) => {
      const { x } = new DOMPoint(clientX, 0).matrixTransform(chart.getScreenCTM().inverse());
      const share = (x - FRAME.left) / (FRAME.width - FRAME.left - FRAME.right);
      const chosen = threshold(Math.max(0, Math.min(1, share)));
      // Rounded down, so that the answer pointed at is kept.
      setThreshold(String(Math.floor(100 * chosen + 1e-9) / 100));
    };
    chart.addEventListener("pointerdown", (event) => {
      chart.setPointerCapture(event.pointerId);
      drag(event);
    });
    chart.addEventListener("pointermove", (event) => {
      if (event.buttons) drag(event);
    });
  }

  // `state` names the estimator and the threshold; answers without a confidence are left out.
  show(chosen, state) {
    const { held_out, correct } = this.answers.columns;
    const probability = held_out[state.by] ?? [];
    const judged = chosen.filter((at) => correct[at] !== null && (probability[at] ?? null) !== null)
      .map((at) => ({ p: probability[at], correct: correct[at], group: this.answers.group(at) }))
      .sort((a, b) => b.p - a.p);
    this.judged = judged;
    const threshold = Number(state.threshold);
    const kept = judged.filter(({ p }) => p >= threshold);
    this.histogram(judged, threshold);
    this.reliability(judged);
    this.coverage(judged, kept);
    document.getElementById("threshold").value = threshold;
    document.getElementById("at").textContent = threshold.toFixed(2);
    document.getElementById("kept").textContent = keeping(judged, kept);
    document.getElementById("decided").textContent = this.answers.decision?.about ?? "";
    document.getElementById("basis").textContent = (this.answers.ofFile ? "of labelled answers: "
      : `of split ${this.answers.split}: `)
      + `${grouped(judged.length)} of ${grouped(chosen.length)} answers, ${this.answers.ofFile
        ? "each by a fit that had not seen it" : "held out from its calibration"}`;
    const area = auroc(judged);
    document.getElementById("ranking").textContent = judged.length
      ? `AUROC of these probabilities: ${number(area, 3)}` : "";
  }

  histogram(judged, threshold) {
    const counts = Array.from({ length: BINS }, () => [0, 0]);
    for (const { p, correct } of judged) counts[Math.min(BINS - 1, Math.floor(p * BINS))][correct ? 0 : 1]++;
    const most = Math.max(1, ...counts.flat());
    const [middle, half] = [up(0.5), (up(0) - up(1)) / 2];
    const bars = counts.flatMap((pair, bin) => pair.map((count, wrong) => {
      const height = half * count / most;
      return svg("rect", {
        x: across(bin / BINS) + 0.5, width: across(1 / BINS) - across(0) - 1,
        y: wrong ? middle : middle - height, height,
        class: `${wrong ? "wrong" : "correct"}${(bin + 1) / BINS <= threshold ? " below" : ""}`,
      }, `${count} ${wrong ? "wrong" : "correct"}, confidence ${(bin / BINS).toFixed(2)} to ${
        ((bin + 1) / BINS).toFixed(2)}`);
    }));
    const label = (y, text) => svgText(FRAME.left - 4, y, text, "end");
    this.draw("histogram", `${sizes(judged)} by confidence`, [
      ...bars,
      svg("line", { class: "axis", x1: across(0), x2: across(1), y1: middle, y2: middle }),
      ...this.decided(),
      svg("line", { class: "threshold", x1: across(threshold), x2: across(threshold), y1: up(1), y2: up(0) }),
      label(up(1) + 4, grouped(most)), label(middle + 3, "0"), label(up(0), grouped(most)),
    ]);
  }

  // The threshold of the page's error rate, wherever the slider is.
  decided() {
    const at = this.answers.decision?.threshold ?? null;
    if (at === null) return [];
    const line = { class: "decided", x1: across(at), x2: across(at), y1: up(1), y2: up(0) };
    return [svg("line", line, this.answers.decision.about)];
  }

  reliability(judged) {
    const bins = Array.from({ length: RELIABILITY_BINS }, () => []);
    for (const one of judged) {
      bins[Math.min(RELIABILITY_BINS - 1, Math.floor(one.p * RELIABILITY_BINS))].push(one);
    }
    const filled = bins.filter((members) => members.length).map((members) => ({
      n: members.length,
      p: members.reduce((sum, { p }) => sum + p, 0),
      correct: members.filter(({ correct }) => correct).length,
      ends: interval(members, ({ correct }) => correct),
    }));
    const error = filled.reduce((sum, { p, correct }) => sum + Math.abs(p - correct), 0) / judged.length;
    const most = Math.max(1, ...filled.map(({ n }) => n));
    this.draw("reliability", `Expected calibration error ${error.toFixed(3)}`, [
      svg("line", { class: "diagonal", x1: across(0), x2: across(1), y1: up(0), y2: up(1) }),
      ...filled.map(({ n, p, ends }) => svg("line", {
        class: "interval", x1: across(p / n), x2: across(p / n), y1: up(ends[0]), y2: up(ends[1]) })),
      ...filled.map(({ n, p, correct, ends }) => svg("circle", {
        class: "bin", cx: across(p / n), cy: up(correct / n), r: 2 + 4 * Math.sqrt(n / most),
      }, `${correct} of ${n} answers correct (95 % interval ${(100 * ends[0]).toFixed(0)} to ${
        (100 * ends[1]).toFixed(0)} %), mean confidence ${(p / n).toFixed(2)}`)),
      ...shares(),
      ...(judged.length ? [svgText(across(0.99), up(0.04), `ECE ${error.toFixed(3)}`, "end")] : []),
    ]);
  }

  coverage(judged, kept) {
    let wrong = 0;
    const risks = judged.map(({ correct }, place) => (wrong += correct ? 0 : 1) / (place + 1));
    // Answers of equal confidence are kept together.
    const ends = risks.map((risk, place) => [(place + 1) / judged.length, risk])
      .filter((_, place) => place + 1 === judged.length || judged[place].p !== judged[place + 1].p);
    const line = ends.map(([share, risk]) => `${across(share).toFixed(1)},${up(risk).toFixed(1)}`);
    const place = kept.length ? [kept.length / judged.length, risks[kept.length - 1]] : null;
    this.draw("coverage", "Share wrong by share kept", [
      svg("polyline", { class: "risk", points: line.join(" ") }),
      ...(place ? [svg("circle", { class: "kept", cx: across(place[0]), cy: up(place[1]), r: 4 })] : []),
      ...shares(),
    ]);
  }

  draw(name, title, parts) {
    this.charts[name].setAttribute("aria-label", title);
    this.charts[name].replaceChildren(...parts, ...["0", "0.5", "1"].map((text) =>
      svgText(across(Number(text)), FRAME.height - 3, text, "middle")));
  }
}

// Marks on the vertical axis of a share.
function shares() {
  return ["0", "0.5", "1"].flatMap((text) => [
    svg("line", { class: "grid", x1: across(0), x2: across(1), y1: up(Number(text)), y2: up(Number(text)) }),
    svgText(FRAME.left - 4, up(Number(text)) + 3, text, "end"),
  ]);
}

function svg(tag, attributes, title) {
  // The namespace of the page's own drawings.
  const space = document.getElementById("histogram").namespaceURI;
  const made = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (title) {
    const tooltip = document.createElementNS(space, "title");
    tooltip.textContent = title;
    made.append(tooltip);
  }
  return made;
}

function svgText(x, y, text, anchor) {
  const made = svg("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}

function sizes(judged) {
  const correct = judged.filter((one) => one.correct).length;
  return `${correct} correct and ${judged.length - correct} wrong answers`;
}

function keeping(judged, kept) {
  if (!judged.length) return "None of these answers was held out from the calibration and scored by this estimator.";
  const wrong = (some) => shareInWords(some, ({ correct }) => !correct, "wrong");
  const all = `All ${grouped(judged.length)}: ${wrong(judged)}.`;
  if (!kept.length) return `None reaches the threshold. ${all}`;
  const share = (100 * kept.length / judged.length).toFixed(0);
  return `At or above it: ${grouped(kept.length)} answers (${share} %), ${wrong(kept)}. ${all}`;
}
