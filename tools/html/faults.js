// SPDX-License-Identifier: Apache-2.0
// Reports of plumb faults (faults by detectors) and of plumb judge (calls of a trace).

function faultMark(one, detector) {
  if (one.skipped !== undefined || one.died) return "";
  const saw = one.seen.includes(detector);
  if (one.within_numerics !== undefined) return saw ? "!" : "\u00b7";
  if (detector === one.seen_by) return saw ? "X" : "MISSED";
  if (detector === one.blind) return saw ? "!" : "o";
  return saw ? "x" : "\u00b7";
}

function faultOutcome(one) {
  if (one.skipped !== undefined) return ["skipped", "\u2013 skipped: " + one.skipped];
  if (one.died) return ["failed", "\u2717 crashed: " + one.died];
  if (one.within_numerics !== undefined) {
    return one.within_numerics ? ["passed", "\u2713 within the numerics"] : ["failed", "\u2717 seen, but within the numerics"];
  }
  if (!one.found) return ["failed", "\u2717 missed"];
  return one.blamed_first ? ["passed", "\u2713 found, its op blamed first"] : ["untrusted", "? found, another op blamed first"];
}

function faultMatrix() {
  const all = data.faults;
  const detectors = [...new Set(all.flatMap((one) => [one.seen_by, one.blind, ...one.seen]).filter(Boolean))];
  const head = node("tr", {}, node("th", {class: "op"}, "fault"), detectors.map((name) => node("th", {class: "turned"}, node("span", {}, name))),
                    node("th", {}, "outcome"));
  const rows = all.map((one) => {
    const [state, text] = faultOutcome(one);
    const cells = detectors.map((name) => {
      const mark = faultMark(one, name), bad = mark === "MISSED" || mark === "!";
      return node("td", {class: "cell" + (bad ? " is-failed" : ""), title: one.name + ", " + name}, mark);
    });
    return node("tr", {}, node("th", {class: "op", scope: "row"}, breakable(one.name), node("div", {class: "soft small"}, one.platform)),
                cells, node("td", {class: "is-" + state}, text));
  });
  return node("div", {class: "scroll"}, node("table", {class: "grid"}, node("thead", {}, head), node("tbody", {}, rows)));
}

function faultDetails(one) {
  const [state, text] = faultOutcome(one);
  return folded(node("span", {}, node("span", {class: "mono"}, one.name), " ", node("span", {class: "soft"}, one.platform), " ",
                     node("span", {class: "is-" + state}, text)),
    () => node("div", {}, node("dl", {class: "facts"}, fact("stands for", one.stands_for), fact("broken op", (one.broken || []).join(", "), "mono"),
                               fact("schedule", one.schedule), fact("diagnosis", one.diagnosis)),
               one.findings.length ? findingsTimeline(one.findings) : null), false);
}

function faultsPage() {
  const bad = data.objections.length, alarms = data.clean.filter((one) => one.findings.length || one.died);
  const head = node("section", {id: "run"}, node("h1", {}, "plumb faults: " + data.file),
    bad ? node("p", {class: "verdict failed"}, SIGNS.failed + " " + data.objections.join("; "))
        : node("p", {class: "verdict passed"}, SIGNS.passed + " every fault is found, without a false alarm"), runBlock(data.run));
  return [head, !data.faults.length ? null : section("matrix", "Faults by detectors",
      node("p", {class: "soft small"}, "X detector for this fault, saw it; MISSED detector for this fault, saw nothing; x another detector, saw it; " +
           "o detector that should miss it, saw nothing; ! detector that should miss it, saw it; \u00b7 saw nothing."), faultMatrix()),
    !data.faults.length ? null : section("faults", "Each fault", data.faults.map(faultDetails)),
    section("clean", "Without a fault", node("p", {}, counted(data.clean.length, "schedule") + ", " + counted(alarms.length, "alarm")),
            alarms.map(faultDetails))];
}

function judgePage() {
  const total = data.total, wrong = data.wrong;
  const head = node("section", {id: "run"}, node("h1", {}, "plumb judge: " + data.trace),
    wrong.length || data.first_non_finite
      ? node("p", {class: "verdict failed"}, SIGNS.failed + " " + total.failed + " of " + counted(total.calls, "call") + " wrong" +
             (data.first_non_finite ? ", and a NaN or infinity that nothing explains" : ""))
      : total.passed ? node("p", {class: "verdict passed"}, SIGNS.passed + " no call is wrong, of " + total.passed + " judged")
                     : node("p", {class: "verdict warn"}, "? no call was judged"), runBlock(data.run));
  const call = (one, open) => node("div", {class: "failure"}, folded(
    node("span", {}, node("span", {class: "is-failed"}, SIGNS.failed + " call " + one.call), " ", node("span", {class: "mono"}, one.op || one.name)),
    () => node("div", {}, node("dl", {class: "facts"}, fact("operation", one.op, "mono"), fact("called as", one.name, "mono"), fact("step", String(one.step)),
                     fact("layer", one.layer >= 0 ? String(one.layer) : ""), fact("what is wrong", one.failures, "mono"), fact("NaN", one.non_finite)),
               copyLine("plumb judge " + data.trace + " --call " + one.call)), open));
  const calls = [...wrong, ...(data.first_non_finite && !wrong.some((one) => one.call === data.first_non_finite.call) ? [data.first_non_finite] : [])];
  return [head,
    data.timeline.length ? section("timeline", "Calls of the trace", traceTimeline(data.timeline, wrong)) : null,
    calls.length ? section("failures", "Wrong calls", calls.slice(0, 200).map((one, i) => call(one, i < 3)),
                           calls.length > 200 ? node("p", {class: "soft"}, "and " + (calls.length - 200) + " more in the JSON report") : null) : null,
    section("ops", "By operation", table(["op", "calls", "passed", "failed", "not judged", "largest error / bound"], data.ops)),
    data.not_judged ? section("notjudged", "Not judged", table(["op", "why", "calls"], data.not_judged)) : null];
}
