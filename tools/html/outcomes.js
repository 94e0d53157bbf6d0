// SPDX-License-Identifier: Apache-2.0
// Cases and their outcomes. Each outcome has a sign, so that colour is not needed.

const SIGNS = {passed: "\u2713", failed: "\u2717", untrusted: "?", known_bug: "!", skipped: "\u2013"};
const WORDS = {passed: "passed", failed: "failed", untrusted: "untrusted", known_bug: "known bugs",
               skipped: "skipped"};
const MEANINGS = {
  passed: "right within the bounds",
  failed: "wrong",
  untrusted: "passed, but could not have failed (nothing compared, or all zeros)",
  known_bug: "fails, and its row says so",
  skipped: "not run on this platform"};
// Worst first.
const OUTCOMES = ["failed", "untrusted", "known_bug", "passed", "skipped"];

function rankOf(outcome) {
  const rank = OUTCOMES.indexOf(outcome);
  return rank < 0 ? 0 : rank;
}

function signOf(outcome) {
  return SIGNS[outcome] || "?";
}

function worstOf(cases) {
  return cases.map((one) => one.outcome).sort((a, b) => rankOf(a) - rankOf(b))[0];
}

function isFailure(one) {
  return one.outcome === "failed" || one.outcome === "untrusted";
}

function platformOf(one) {
  return data.platforms[one.platform];
}

// "op/row/scenario"
function partsOf(one) {
  const parts = one.case.split("/");
  return {op: parts[0], row: parts[1] || "", scenario: parts.slice(2).join("/")};
}

function marginOf(pair) {
  return pair[1] === "inf" || pair[1] === "nan" ? Infinity : Number(pair[1]);
}

// Filters set by the input boxes at the top.
const wanted = {words: [], outcome: ""};
const listeners = [];
function isWanted(one) {
  if (wanted.outcome && one.outcome !== wanted.outcome) return false;
  const name = one.case + " " + platformOf(one);
  return wanted.words.every((word) => name.includes(word));
}

function filterTools() {
  const box = node("input", {type: "search", placeholder: "filter: rms_norm eager sim-sm90",
                             "aria-label": "filter cases by parts of their names"});
  const choice = node("select", {"aria-label": "outcome"},
    node("option", {value: ""}, "all outcomes"),
    OUTCOMES.map((outcome) => node("option", {value: outcome}, signOf(outcome) + " " + WORDS[outcome])));
  const change = () => {
    wanted.words = box.value.split(/\s+/).filter(Boolean);
    wanted.outcome = choice.value;
    for (const listener of listeners) listener();
  };
  box.addEventListener("input", change);
  choice.addEventListener("change", change);
  return node("div", {class: "tools"}, box, choice);
}

function countOutcomes(cases) {
  const counts = {};
  for (const one of cases) counts[one.outcome] = (counts[one.outcome] || 0) + 1;
  return counts;
}

function runBlock(members) {
  return node("dl", {class: "run"}, members.map(([name, text]) =>
    node("div", {}, node("dt", {}, name), node("dd", {class: "mono"}, text))));
}

function runHead() {
  const counts = countOutcomes(data.cases);
  const bad = (counts.failed || 0) + (counts.untrusted || 0);
  const verdict = bad
    ? node("p", {class: "verdict failed"},
           SIGNS.failed + " " + bad + " of " + counted(data.cases.length, "case") + " failed or proved too little")
    : counts.passed
      ? node("p", {class: "verdict passed"}, SIGNS.passed + " no case failed, of " + data.cases.length)
      : node("p", {class: "verdict warn"}, "? no case passed");
  const tiles = OUTCOMES.filter((outcome) => counts[outcome] || outcome === "failed").map((outcome) =>
    node("div", {class: "tile " + (counts[outcome] ? outcome : ""), title: MEANINGS[outcome]},
         node("b", {}, signOf(outcome) + " " + (counts[outcome] || 0)), WORDS[outcome]));
  return node("section", {id: "run"}, node("h1", {}, "plumb report: " + data.file), verdict,
              node("div", {class: "tiles"}, tiles), runBlock(data.run));
}
