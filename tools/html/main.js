// SPDX-License-Identifier: Apache-2.0
// Puts the page together.

function runPage() {
  const head = runHead();
  const failures = data.cases.some(isFailure) ? failureSection() : null;
  return [head, filterTools(), failures, historySection(), gridSection(), marginSection(), coverageSection(), goldenSection()];
}

function showPage() {
  const parts = {run: runPage, faults: faultsPage, judge: judgePage, goldens: goldensPage}[data.kind]().filter(Boolean);
  parts[0].append(node("nav", {"aria-label": "sections"}, sections.map(([id, title]) => node("a", {href: "#" + id}, title))));
  document.getElementById("page").append(...parts);
}

showPage();
