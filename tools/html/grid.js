// SPDX-License-Identifier: Apache-2.0
// Table of verdicts by op, scenario and platform. A click on a cell lists its cases.

const SCENARIOS = ["eager", "full_graph", "composition", "concurrent", "queued"];

function scenarioOrder(a, b) {
  const place = (name) => SCENARIOS.includes(name) ? SCENARIOS.indexOf(name) : SCENARIOS.length;
  return place(a) - place(b) || (a < b ? -1 : a > b ? 1 : 0);
}

function caseItem(one) {
  const margins = (one.margins || []).map((pair) => pair[0] + " " + short(pair[1])).join(", ");
  const name = isFailure(one)
    ? node("a", {href: "#" + failureId(one), onclick: (event) => { event.preventDefault(); openFailure(one); }},
           one.case)
    : one.case;
  return node("li", {}, node("span", {class: "is-" + one.outcome}, signOf(one.outcome) + " "),
              node("span", {class: "mono"}, name),
              node("span", {class: "soft small"}, "  " + platformOf(one) +
                   (margins ? "; error / bound: " + margins : "") + (one.reason ? "; " + one.reason : "") +
                   "; " + short(one.seconds) + " s"));
}

// The list of a cell's cases is shown in an extra row below.
function cellButton(cases, row, width) {
  const worst = worstOf(cases), count = cases.filter((one) => one.outcome === worst).length;
  const text = signOf(worst) + " " + (count === cases.length ? count : count + " of " + cases.length);
  const button = node("button", {type: "button", class: "chip " + worst, "aria-expanded": "false",
                                 title: count + " of " + cases.length + " " + WORDS[worst]}, text);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    for (const other of row.querySelectorAll("button")) other.setAttribute("aria-expanded", "false");
    if (row.nextSibling && row.nextSibling.classList.contains("list")) row.nextSibling.remove();
    if (open) return;
    button.setAttribute("aria-expanded", "true");
    const sorted = [...cases].sort((a, b) => rankOf(a.outcome) - rankOf(b.outcome));
    row.after(node("tr", {class: "list"}, node("td", {class: "opened", colspan: width},
      node("ul", {class: "cases"}, sorted.map(caseItem)))));
  });
  return button;
}

function gridTable(cases) {
  const ops = new Map();
  for (const one of cases) {
    const {op, scenario} = partsOf(one);
    if (!ops.has(op)) ops.set(op, new Map());
    const key = scenario + " " + one.platform;
    if (!ops.get(op).has(key)) ops.get(op).set(key, []);
    ops.get(op).get(key).push(one);
  }
  const scenarios = [...new Set(cases.map((one) => partsOf(one).scenario))].sort(scenarioOrder);
  const platforms = data.platforms.map((_, i) => i).filter((i) => cases.some((one) => one.platform === i));
  const width = 1 + scenarios.length * platforms.length;
  const body = node("tbody", {});
  for (const [op, cells] of ops) {
    const row = node("tr", {}, node("th", {class: "op", scope: "row"}, breakable(op)));
    for (const scenario of scenarios) {
      for (const [i, platform] of platforms.entries()) {
        const inside = cells.get(scenario + " " + platform);
        row.append(node("td", {class: "cell" + (i ? "" : " begins")},
                        inside ? cellButton(inside, row, width) : node("span", {class: "soft"}, "\u00b7")));
      }
    }
    body.append(row);
  }
  return node("div", {class: "scroll"}, node("table", {class: "grid"}, node("thead", {},
    node("tr", {}, node("th", {class: "op"}, "op"), scenarios.map((name) =>
      node("th", {class: "scenario", colspan: platforms.length}, name))),
    node("tr", {}, node("th", {class: "op"}), scenarios.map(() => platforms.map((i) =>
      node("th", {class: "platform"}, data.platforms[i]))))), body));
}

// Scenarios of decode steps are graph modes, so decode steps have a separate table.
function gridSection() {
  const place = node("div", {});
  const show = () => {
    const cases = data.cases.filter(isWanted), steps = (one) => partsOf(one).op === "decode_step";
    const ops = cases.filter((one) => !steps(one)), decode = cases.filter(steps);
    place.replaceChildren();
    if (ops.length) place.append(gridTable(ops));
    if (decode.length) place.append(node("h3", {}, "Decode steps, by graph mode"), gridTable(decode));
    if (!cases.length) place.append(node("p", {class: "soft"}, "No case has such a name and outcome."));
  };
  listeners.push(show);
  show();
  return section("grid", "Verdicts by op, scenario and platform",
    node("p", {class: "soft small"}, "A cell shows its worst outcome and how many cases have it. Press it for the cases. ",
         OUTCOMES.map((outcome) => signOf(outcome) + " " + WORDS[outcome]).join(", ") + ", \u00b7 no case."),
    place);
}

// Cells of the coverage table: cases with at least one compared element.
function coverageSection() {
  const rows = new Map();
  for (const one of data.cases) {
    const {op, scenario} = partsOf(one), key = op + "\u0000" + scenario;
    if (!rows.has(key)) rows.set(key, data.platforms.map(() => 0));
    rows.get(key)[one.platform] += one.compared ? 1 : 0;
  }
  const make = () => table(["op", "scenario", ...data.platforms],
    [...rows].map(([key, counts]) => [...key.split("\u0000"), ...counts]));
  const total = data.cases.filter((one) => one.compared).length;
  return section("coverage", "Coverage",
    node("p", {}, counted(total, "case") + " of " + data.cases.length +
         " compared at least one element with the reference. If a count drops, coverage was lost, even if the run is green."),
    lostCoverage(), folded("Counts by op, scenario and platform", make, false));
}
