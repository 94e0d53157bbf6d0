// SPDX-License-Identifier: Apache-2.0
// Moved tensors of goldens, with values before and after.

// A tensor may be rejected although each of its elements is within its bound.
function shareOfBound(drift) {
  if (drift.rejected) return node("span", {class: "is-failed"}, SIGNS.failed + " rejected by the reference");
  if (drift.of_bound === null || drift.of_bound === undefined) return "";
  return drift.of_bound === 0 ? "within the last rounding" : short(drift.of_bound) + " of the bound";
}

function differenceText(drift) {
  if (typeof drift.difference !== "number") return "";
  const size = drift.difference > 0 ? short(drift.difference) : "too small for the sketch";
  return (drift.estimated ? "about " : "") + size + (drift.columns ? ", in columns " + drift.columns : "");
}

// Nine digits identify an fp32 number.
function exact(value) {
  return typeof value === "number" ? String(Number(value.toPrecision(9))) : String(value);
}

function statisticsTable(drift) {
  if (!drift.was && !drift.is) return null;
  const rows = [["L2 norm", "norm"], ["mean", "mean"], ["least element", "least"], ["greatest element", "greatest"],
                ["elements that are not finite", "non_finite"]];
  const value = (side, name) => side ? node("span", {class: "mono"}, exact(side[name])) : "not stored";
  return node("figure", {}, node("figcaption", {}, "the whole tensor"),
    table(["", "before", "after"], rows.map(([title, name]) => [title, value(drift.was, name), value(drift.is, name)])));
}

function elementsTable(drift) {
  if (!drift.largest || !drift.largest.length) return null;
  return node("figure", {}, node("figcaption", {}, "stored elements that moved farthest"),
    table(["row", "column", "before", "after", "ulp"],
          drift.largest.map(([row, column, was, is, ulp]) =>
            [row, column, node("span", {class: "mono"}, exact(was)), node("span", {class: "mono"}, exact(is)), ulp])));
}

function distanceBars(drift) {
  if (!drift.histogram || !drift.histogram.length) return null;
  const most = Math.max(...drift.histogram.map(([, count]) => count));
  const bars = drift.histogram.map(([name, count]) => {
    const bar = node("i", {});
    bar.style.width = 100 * count / most + "%";
    return [node("span", {class: "name"}, name), node("span", {class: "track"}, bar), node("span", {class: "soft"}, String(count))];
  });
  return node("figure", {}, node("figcaption", {}, "stored elements by distance in ulp"), node("div", {class: "bars"}, bars));
}

function movedTensor(drift) {
  if (drift.other) return node("div", {class: "picture"}, node("h3", {class: "mono"}, drift.tensor), node("p", {}, drift.other));
  const facts = node("dl", {class: "facts"},
    fact("rows moved", drift.rows_moved + " of " + drift.rows + (drift.moved_rows ? ": " + drift.moved_rows : "")),
    fact("stored elements moved", drift.elements_moved + (drift.elements === null ? "" : " of " + drift.elements) +
         (drift.elements_moved ? ", at most " + short(drift.ulp) + " ulp" : "")),
    fact("allowed", shareOfBound(drift)), fact("L2 norm of the difference", differenceText(drift)), fact("largest", drift.where, "mono"));
  return node("div", {class: "picture"}, node("h3", {class: "mono"}, drift.tensor), facts,
              node("div", {class: "charts"}, statisticsTable(drift), elementsTable(drift), distanceBars(drift)));
}

function movedRow(one, drift, ...first) {
  return [one.case, ...first, drift.tensor, drift.other || drift.rows_moved + " of " + drift.rows, drift.elements_moved, drift.ulp,
          shareOfBound(drift), differenceText(drift), drift.where];
}

const MOVED_HEADS = ["tensor", "rows moved", "elements moved", "ulp", "allowed", "difference (L2)", "where"];

function movedCase(one, title, open) {
  return folded(title, () => node("div", {}, (one.rejected || []).map((line) => node("p", {class: "is-failed"}, SIGNS.failed + " " + line)),
                                  (one.drift || []).map(movedTensor)), open);
}

// The goldens section of the page of a run.
function goldenSection() {
  const judged = data.cases.filter((one) => one.golden);
  if (!judged.length) return null;
  const counts = {};
  for (const one of judged) counts[one.golden.agreement] = (counts[one.golden.agreement] || 0) + 1;
  const moved = judged.filter((one) => one.golden.drift);
  const rows = moved.flatMap((one) => one.golden.drift.map((drift) => movedRow(one, drift, platformOf(one), one.golden.agreement)));
  const values = () => node("div", {}, moved.slice(0, 300).map((one) =>
    movedCase(one.golden, node("span", {class: "mono"}, one.case + " " + platformOf(one)), moved.length < 4)));
  return section("goldens", "Goldens: stored results, before and after",
    node("p", {}, Object.entries(counts).map(([name, count]) => count + " " + name.replaceAll("_", " ")).join(", ") +
         ". A golden is an earlier result of this platform. \"Moved\" elements have other bits now."),
    rows.length ? [folded(counted(rows.length, "tensor") + " moved", () => table(["case", "platform", "agreement", ...MOVED_HEADS],
                                                                               rows.slice(0, 500)), rows.length < 20),
                   folded("values before and after", values, moved.length < 4)] : null);
}

function goldensHead() {
  const verdict = data.different
    ? node("p", {class: "verdict warn"}, "! " + counted(data.different, "case") + " with other results, " + data.same + " with the same")
    : node("p", {class: "verdict passed"}, SIGNS.passed + " the same results: " + counted(data.same, "case"));
  return node("section", {id: "run"}, node("h1", {}, "plumb golden: " + data.before + " and " + data.after), verdict,
    node("p", {class: "soft small"}, "Before: " + data.before + ". After: " + data.after + ". A golden says what moved, not what is right: " +
         "a share of a bound stands here only where the reference was asked."),
    data.because_of.length ? table(["cases", "because of"], data.because_of.map(([name, count]) => [count, name])) : null,
    data.results.map(([name, digest]) => node("p", {class: "small"}, "results of " + name + ": ", node("code", {}, digest))));
}

function goldensPage() {
  const box = node("input", {type: "search", placeholder: "filter: rms_norm sim-sm90", "aria-label": "filter cases by parts of their names"});
  const entries = data.cases.map((one, i) => {
    const title = node("span", {}, node("span", {class: "mono"}, one.case), " ", node("span", {class: "soft"}, one.platform), " ",
                       one.change, one.because_of ? ", because of: " + one.because_of : "",
                       one.rejected ? node("span", {class: "is-failed"}, " " + SIGNS.failed + " rejected by the reference") : "");
    return [one.case + " " + one.platform, one.change === "moved" || one.rejected ? movedCase(one, title, i < 3) : node("p", {}, title)];
  });
  box.addEventListener("input", () => {
    const words = box.value.split(/\s+/).filter(Boolean);
    for (const [name, element] of entries) element.hidden = !words.every((word) => name.includes(word));
  });
  const rows = data.cases.flatMap((one) => one.drift.map((drift) => movedRow(one, drift, one.platform)));
  return [goldensHead(),
    rows.length ? section("moved", "Tensors that moved",
      folded(counted(rows.length, "tensor"), () => table(["case", "platform", ...MOVED_HEADS], rows.slice(0, 500)), rows.length < 20)) : null,
    entries.length ? section("cases", "Cases, with values before and after", node("div", {class: "tools"}, box),
      entries.map(([, element]) => element)) : null];
}
