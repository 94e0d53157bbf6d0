// SPDX-License-Identifier: Apache-2.0
// Puts the page together.

function showPage() {
  const head = runHead();
  const failures = data.cases.some(isFailure) ? failureSection() : null;
  const parts = [head, filterTools(), failures, gridSection(), marginSection(), coverageSection(), goldenSection()].filter(Boolean);
  head.append(node("nav", {"aria-label": "sections"}, sections.map(([id, title]) => node("a", {href: "#" + id}, title))));
  document.getElementById("page").append(...parts);
}

showPage();
