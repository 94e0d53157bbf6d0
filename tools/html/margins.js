// SPDX-License-Identifier: Apache-2.0
// How near each tensor came to its bound, and what changed against the goldens.

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

// The track is 1.25 long; a mark stands at 1.
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
         "The largest error over its bound of each tensor, of all cases. The mark stands at 1: beyond it a value is wrong. " +
         "A bar near the mark is no defect; one that grows from report to report is worth a look."),
    bars(all.slice(0, first)),
    all.length > first ? folded(counted(all.length - first, "more tensor"), () => bars(all.slice(first)), false) : null);
}

function goldenSection() {
  const judged = data.cases.filter((one) => one.golden);
  if (!judged.length) return null;
  const counts = {};
  for (const one of judged) counts[one.golden.agreement] = (counts[one.golden.agreement] || 0) + 1;
  const moved = judged.filter((one) => one.golden.drift);
  const rows = moved.flatMap((one) => one.golden.drift.map((drift) =>
    [one.case, platformOf(one), one.golden.agreement, drift.tensor, drift.rows_moved + " of " + drift.rows,
     drift.elements_moved, drift.ulp, drift.of_bound === null ? "" : drift.of_bound, drift.where]));
  const heads = ["case", "platform", "agreement", "tensor", "rows moved", "elements moved", "ulp", "of the bound", "where"];
  return section("goldens", "Goldens: stored results, before and after",
    node("p", {}, Object.entries(counts).map(([name, count]) => count + " " + name.replaceAll("_", " ")).join(", ") +
         ". A golden is what this platform computed before. \"Moved\" elements have other bits now."),
    rows.length ? folded(counted(rows.length, "tensor") + " moved", () => table(heads, rows.slice(0, 500)), rows.length < 20)
                : null);
}
