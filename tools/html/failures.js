// SPDX-License-Identifier: Apache-2.0
// Failed cases in groups that look alike. The first case of each group is unfolded.

// As plumb run groups them; reports of earlier versions do not say how, and have one group for each op.
function failureGroups(cases) {
  const groups = new Map();
  for (const one of cases) {
    const key = (one.details && one.details.signature) || partsOf(one).op;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one);
  }
  return [...groups.values()];
}

function fact(name, value, kind) {
  if (!value || value.length === 0) return [];
  const content = Array.isArray(value)
    ? node("ol", {class: "lines"}, value.map((line) => node("li", {}, line))) : value;
  return [node("dt", {}, name), node("dd", {class: kind}, content)];
}

function tensorText(tensor) {
  const rows = tensor.wrong_rows ? (tensor.wrong_row_count === 1 ? "row " : "rows ") + tensor.wrong_rows + " wrong (" + tensor.wrong_row_count +
    " of " + tensor.rows_compared + " compared)" : "no single row is wrong";
  return tensor.tensor + ": " + rows + ", " + counted(tensor.wrong_elements || 0, "element") +
    " beyond the bound, largest error / bound " + short(tensor.margin);
}

function failureBody(one) {
  const details = one.details;
  if (!details) {
    return node("p", {class: "soft"}, one.reason || "",
                " This page had no room for the details of this case: the JSON report has them.");
  }
  const facts = node("dl", {class: "facts"}, fact("operation", partsOf(one).op, "mono"),
                     fact("row, scenario", partsOf(one).row + ", " + partsOf(one).scenario, "mono"),
                     fact("platform", platformOf(one), "mono"), fact("reason", one.reason));
  const found = firstFinding(details.findings || []);
  if (found) facts.append(...fact("first wrong op", found.op + " (" + found.call + "), step " + found.step, "mono"));
  for (const [i, failure] of details.failures.entries()) {
    facts.append(...fact("tensors", failure.tensors.map(tensorText)));
    facts.append(...fact(i ? "wrong again" : "what is wrong", failure.lines, "mono"));
    facts.append(...fact("where", failure.context));
  }
  if (details.more_failures) facts.append(...fact("", counted(details.more_failures, "more failed step")));
  facts.append(...fact("cause", details.diagnosis, "cause"), ...fact("what fails", details.contrast),
               ...fact("declaration", [details.right_if, details.passes_if].filter(Boolean)),
               ...fact("plug-in", details.notes), ...fact("tensors written to", details.dump, "mono"));
  return node("div", {}, facts, (details.pictures || []).map(picture),
              details.findings ? findingsTimeline(details.findings) : null,
              node("p", {class: "soft small"}, "This line repeats the case:"), copyLine(details.reproduce));
}

function failureId(one) {
  return "case-" + data.cases.indexOf(one);
}

function failureBox(one, open) {
  const head = [node("span", {class: "is-" + one.outcome}, signOf(one.outcome) + " " + one.outcome), " ",
                node("span", {class: "mono"}, one.case), " ", node("span", {class: "soft"}, platformOf(one))];
  const box = folded(head, () => failureBody(one), open);
  return node("div", {class: "failure " + one.outcome, id: failureId(one)}, box);
}

function openFailure(one) {
  const box = document.getElementById(failureId(one));
  if (!box) return;
  for (let up = box.parentElement; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
  box.querySelector("details").open = true;
  box.scrollIntoView();
}

function groupBox(group, open) {
  const [first, ...others] = group;
  const box = node("div", {}, failureBox(first, open));
  if (others.length) {
    box.append(folded(node("span", {class: "soft"}, counted(others.length, "more case") + " of " +
                           partsOf(first).op + " that look alike"),
                      () => node("div", {}, others.map((one) => failureBox(one, false))), false));
  }
  return box;
}

function failureSection() {
  const place = node("div", {});
  const show = () => {
    const failed = data.cases.filter((one) => isFailure(one) && isWanted(one));
    const groups = failureGroups(failed);
    place.replaceChildren(...groups.map((group, i) => groupBox(group, i < 3)));
    if (!failed.length) place.append(node("p", {class: "soft"}, "None of the selected cases failed."));
  };
  listeners.push(show);
  show();
  const left = data.details_left_out
    ? node("p", {class: "soft"}, counted(data.details_left_out, "failure") +
           " without details: there was no room in this page. The JSON report has them.") : null;
  const pictures = data.cases_without_pictures
    ? node("p", {class: "soft"}, counted(data.cases_without_pictures, "failed case") +
           " without pictures: the report has those of five cases of each op, scenario and tensor.") : null;
  return section("failures", "Failures", left, pictures, place);
}
