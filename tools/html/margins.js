// SPDX-License-Identifier: Apache-2.0
// Margin (error / bound) of each tensor.

function largestMargins() {
  const largest = new Map();
  for (const one of data.cases) {
    for (const pair of one.margins || []) {
      const name = partsOf(one).op + ": " + pair[0], margin = marginOf(pair);
      const known = largest.get(name);
      if (!known || margin > known.margin) largest.set(name, {margin, one});
    }
  }
  return [...largest].sort((a, b) => b[1].margin - a[1].margin);
}

// The bar's scale ends at a margin of 1.25. A mark shows 1, the bound.
function marginBar([name, {margin, one}]) {
  const over = !(margin <= 1), bar = node("i", {class: over ? "over" : null});
  bar.style.width = Math.min(100, 80 * margin) + "%";
  return [node("span", {class: "name mono"}, name),
          node("span", {class: "track", title: one.case + " " + platformOf(one)}, bar, node("b", {})),
          node("span", {class: over ? "is-failed" : "soft"},
               (over ? SIGNS.failed + " " : "") + (margin === Infinity ? "inf" : short(margin)))];
}

function marginSection() {
  const all = largestMargins();
  if (!all.length) return null;
  const bars = (some) => node("div", {class: "bars"}, some.map(marginBar));
  const first = 12;
  return section("margins", "Margins",
    node("p", {class: "soft small"},
         "The largest error over its bound of each tensor, of all cases. The mark stands at 1: a value beyond the mark is wrong. " +
         "A bar near the mark is not a defect. Look at a bar that grows from report to report."),
    bars(all.slice(0, first)),
    all.length > first ? folded(counted(all.length - first, "more tensor"), () => bars(all.slice(first)), false) : null);
}
