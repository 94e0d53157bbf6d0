// SPDX-License-Identifier: Apache-2.0
// Several reports, oldest first: changes since the previous report, and margins over all reports.

function lostCoverage() {
  const history = data.history;
  if (!history) return null;
  if (!history.lost.length) return node("p", {}, SIGNS.passed + " No cell has fewer cases with a compared element than in the previous report.");
  return node("div", {}, node("p", {class: "is-failed"}, SIGNS.failed + " " + counted(history.lost.length, "cell") +
                              " with fewer compared cases than in the previous report:"),
    table(["op", "scenario", "platform", "before", "now"],
          history.lost.map((cell) => [cell.op, cell.scenario, cell.platform, cell.before, cell.now])));
}

function changedCases(title, list, open) {
  if (!list.count) return node("p", {class: "soft"}, title + ": none");
  const more = list.count - list.cases.length;
  return folded(title + ": " + list.count, () => node("ul", {class: "cases"},
    list.cases.map(([name, platform]) => node("li", {}, node("span", {class: "mono"}, name), node("span", {class: "soft"}, " " + platform))),
    more ? node("li", {class: "soft"}, "and " + more + " more") : null), open);
}

// A curve of margins with one point per report. The axis ends at 1, the bound.
function sparkline(points) {
  const w = 14, H = 26, width = points.length * w + 8, x = (i) => 6 + i * w, y = (v) => 3 + (1 - Math.min(1, v)) * (H - 6);
  const known = points.map((v, i) => [v, i]).filter(([v]) => v !== null);
  const path = known.map(([v, i], n) => (n ? "L" : "M") + x(i) + " " + y(v).toFixed(1)).join("");
  return drawn("svg", {viewBox: "0 0 " + width + " " + H, width, height: H, role: "img",
                       "aria-label": "margins " + points.map((v) => v === null ? "none" : short(v)).join(", ")},
    drawn("path", {d: "M0 3H" + width, class: "group"}), drawn("path", {d: path, fill: "none", stroke: "var(--bar)", "stroke-width": 1.5}),
    known.map(([v, i]) => drawn("circle", {cx: x(i), cy: y(v), r: 2.2, class: "fine"},
      drawn("title", {}, data.history.reports[i].file + ": " + short(v)))));
}

function change(points) {
  const known = points.filter((v) => v !== null);
  return known.length < 2 ? 0 : known[known.length - 1] - known[0];
}

function historySection() {
  const history = data.history;
  if (!history) return null;
  const row = ([op, tensor, points]) => {
    const now = points[points.length - 1], grown = change(points);
    return [op + ": " + tensor, sparkline(points), now === null ? "" : now, (grown > 0 ? "+" : "") + short(Number(grown.toPrecision(2)))];
  };
  const series = [...history.margins].sort((a, b) => change(b[2]) - change(a[2]));
  const heads = ["tensor", "margin over the reports", "now", "change"];
  return section("history", "Changes over " + history.reports.length + " reports",
    table(["report, oldest first", "cases", "compared", ...OUTCOMES.map((outcome) => signOf(outcome) + " " + WORDS[outcome])],
      history.reports.map((one) => [one.file, one.cases, one.compared, ...OUTCOMES.map((outcome) => one.outcomes[outcome] || 0)])),
    changedCases("Newly failed", history.newly_failed, true), changedCases("Newly passed", history.newly_passed, false),
    changedCases("Vanished", history.vanished, false), changedCases("Added", history.added, false),
    node("h3", {}, "Margins"),
    node("p", {class: "soft small"}, "Largest error / bound of the passed cases of each tensor, grown most first. The dashed line is the bound."),
    table(heads, series.slice(0, 10).map(row)),
    series.length > 10 ? folded(counted(series.length - 10, "more tensor"), () => table(heads, series.slice(10).map(row)), false) : null);
}
