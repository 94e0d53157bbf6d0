// SPDX-License-Identifier: Apache-2.0
// Calls in the order in which they ran, with the first wrong one.

function firstFinding(findings) {
  return [...findings].sort((a, b) => a.step - b.step || a.position - b.position)[0];
}

// Findings of the detectors in decode steps, by step.
function findingsTimeline(findings) {
  const steps = [...new Set(findings.map((one) => one.step))].sort((a, b) => a - b);
  const last = Math.max(...findings.map((one) => one.position), 1);
  const W = 560, left = 58, line = 24, top = 22;
  const first = firstFinding(findings);
  const shapes = [drawn("text", {x: left, y: 11}, "call 0"),
                  drawn("text", {x: left + W, y: 11, "text-anchor": "end"}, "call " + last)];
  steps.forEach((step, i) => {
    const y = top + i * line + line / 2;
    shapes.push(drawn("text", {x: left - 10, y: y + 4, "text-anchor": "end"}, "step " + step),
                drawn("path", {d: "M" + left + " " + y + "h" + W, class: "group"}));
    for (const one of findings.filter((other) => other.step === step)) {
      const x = left + one.position / last * W;
      shapes.push(drawn("path", {d: "M" + (x - 4) + " " + (y - 4) + "l8 8m0 -8l-8 8", class: "cross"},
                        drawn("title", {}, one.op + " (" + one.call + "): " + one.detector)));
      if (one === first) shapes.push(drawn("circle", {cx: x, cy: y, r: 9, class: "edge"}));
    }
  });
  const width = left + W + 16, height = top + steps.length * line + 6;
  return node("div", {class: "picture"}, node("h3", {}, "Calls of the decode step"),
    node("p", {class: "small"}, "\u2717 a finding; the ring is the first one: ", node("b", {}, "step " + first.step + ", " + first.op + " (" + first.call + ")"),
         ". Later findings may follow from it."),
    node("div", {class: "scroll"}, drawn("svg", {viewBox: "0 0 " + width + " " + height, width, height, role: "img",
                                                 "aria-label": "findings by step and call"}, shapes)),
    folded(counted(findings.length, "finding"), () => table(["step", "call", "op", "name", "detector", "text"],
      findings.map((one) => [one.step, one.position, one.op, one.call, one.detector, one.text])), findings.length < 6));
}

// Calls of one step of a trace: one box each, 80 a line.
function stepStrip(step, firstWrong) {
  const each = 80, w = 8, h = 16, calls = [...step.calls];
  const shapes = calls.map((state, i) => {
    const x = (i % each) * w, y = Math.floor(i / each) * h + 4;
    const title = drawn("title", {}, "call " + step.rank + "/" + step.step + "/" + i + ": " +
                        ({".": "passed", "x": "failed"}[state] || "not judged"));
    if (state === "x") {
      return drawn("g", {}, title, drawn("rect", {x: x + 1, y: y - 2, width: w - 2, height: h - 3, class: "over"}),
                   drawn("path", {d: "M" + (x + 2) + " " + (y - 1) + "l4 11m0 -11l-4 11", stroke: "var(--card)", "stroke-width": 1.3}));
    }
    return drawn("rect", {x: x + 1, y, width: w - 2, height: h - 7, class: state === "." ? "fine" : "frame"}, title);
  });
  if (firstWrong && firstWrong.rank === step.rank && firstWrong.step === step.step) {
    const x = (firstWrong.index % each) * w + w / 2, y = Math.floor(firstWrong.index / each) * h + 8;
    shapes.push(drawn("circle", {cx: x, cy: y, r: 9, class: "edge"}));
  }
  const width = Math.min(each, calls.length) * w + 10, height = Math.ceil(calls.length / each) * h + 8;
  return drawn("svg", {viewBox: "-6 -4 " + width + " " + height, width, height, role: "img",
                       "aria-label": "calls of step " + step.step}, shapes);
}

function traceTimeline(steps, wrong) {
  const first = wrong[0];
  const bad = (step) => step.calls.includes("x");
  const strip = (step) => {
    const picture = stepStrip(step, first);
    return node("div", {}, node("p", {class: "small"}, (bad(step) ? SIGNS.failed : SIGNS.passed) + " rank " + step.rank + ", step " + step.step +
                                ": " + counted(step.calls.length, "call")), node("div", {class: "scroll"}, picture));
  };
  const shown = steps.filter(bad).slice(0, 8), others = steps.filter((step) => !shown.includes(step)).slice(0, 300);
  return node("div", {},
    node("p", {class: "soft small"}, "A box is a call, in the order of the trace: full passed, tall with a cross failed, empty not judged. The ring is the first wrong call."),
    shown.map(strip),
    others.length ? folded(counted(others.length, "other step"), () => node("div", {}, others.map(strip)), !shown.length && others.length < 8) : null);
}
