#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Opens pages of plumb report in headless Chromium. The console must stay empty, and the page must show the report.
#   report_page_test.py PLUMB PLUGINS     the program, and the folder of the tests' wrong plug-ins
# Exit code 77 if there is no Chromium.
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = os.environ.get("PLUMB_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
PLUMB, PLUGINS = "", ""
HOSTILE = "rms_norm/</script><script>document.title='broken'</script><!--\x01\u202e/eager"


def opened(path, *options):
    """(text of the page's nodes after scripts ran, lines on the console)"""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--user-data-dir=" + profile, "--virtual-time-budget=10000", *options, "--dump-dom", "file://" + path],
            capture_output=True, text=True, timeout=300, check=True)
    return done.stdout, re.findall(r".*CONSOLE.*", done.stderr)


def case(name, outcome="failed", platform="sim-sm90", **more):
    return {"case": name, "platform": platform, "outcome": outcome, "comparisons": 1, "seconds": 0.1,
            "reproduce": "plumb run --case " + name, "tensors": [{"tensor": "out", "margin": 0.5}],
            **({"failures": [{"context": "step 0", "lines": ["out: 1 of 4 rows (row 3) wrong"]}]} if outcome == "failed" else {}),
            **more}


def report(*cases):
    return {"schema": 1, "tier": "smoke", "seed": 0, "outcomes": {}, "cases": list(cases)}


class ReportPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def plumb(self, *words, code=0):
        done = subprocess.run([PLUMB, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def page_of(self, *reports):
        names = []
        for i, one in enumerate(reports):
            names.append(self.path(f"report-{i}.json"))
            with open(names[-1], "w") as file:
                json.dump(one, file)
        self.plumb("report", *names, "-o", self.path("page.html"))
        return self.path("page.html")

    def with_script(self, page, script):
        """The page with a further script at its end."""
        with open(page) as file:
            text = file.read()
        changed = self.path("changed.html")
        with open(changed, "w") as file:
            file.write(text.replace("</body>", "<script>" + script + "</script></body>"))
        return changed

    def quiet(self, page, *options):
        dom, console = opened(page, *options)
        self.assertEqual(console, [])
        return html.unescape(re.sub(r"<style>.*?</style>", "", dom.split("<noscript>")[0], flags=re.S))

    def test_a_message_on_the_console_is_seen(self):
        page = self.with_script(self.page_of(report(case("a/b/eager"))), "undefinedFunction();")
        self.assertIn("undefinedFunction", opened(page)[1][0])
        page = self.with_script(self.page_of(report(case("a/b/eager"))), "fetch('https://example.com').catch(() => 0);")
        self.assertTrue(any("Content Security Policy" in line for line in opened(page)[1]))

    def test_failures_of_a_wrong_kernel_name_op_rows_and_cause(self):
        self.plumb("run", "--plugin", PLUGINS + "/launches_ignores_weight.so", "--op", "rms_norm", "--tier", "smoke",
                   "--platform", "sim-sm90", "--json", self.path("run.json"), "--html", self.path("page.html"), code=1)
        dom = self.quiet(self.path("page.html"))
        for part in ("rms_norm.weight.absent (ignores weight)", "rows 0-3 wrong", "plumb run --case rms_norm/",
                     "error over bound by row and column of out", "histogram of error over bound",
                     "expected values against stored ones", ">copy</button>", 'class="chip failed"'):
            self.assertIn(part, dom)
        self.assertLess(os.path.getsize(self.path("page.html")), 5_000_000)

    def test_hostile_texts_stay_text(self):
        dom = self.quiet(self.page_of(report(case(HOSTILE), case("x" * 100_000 + "/y/eager"))))
        self.assertNotIn("<title>broken", dom)
        self.assertIn("</script><script>document.title='broken'</script><!--\ufffd\ufffd/eager", dom)

    def test_strange_reports_make_a_page(self):
        strange = case("a/b/c", pictures=[{"cells": ["?!\u00e9", ""], "levels": "", "rows": -1, "columns": 0, "shape": ["x"]},
                                           {"cells": ["z"], "rows": 1e300, "worst": [3]}, 7],
                       findings=[{"step": "x"}], golden={"agreement": "drifted", "drift": [{}]}, tensors=[{}, 3])
        self.assertIn("a/b/c", self.quiet(self.page_of(report(strange, case("", "unheard of")))))
        self.assertIn("no case passed", self.quiet(self.page_of(report())))

    def test_a_rejected_golden_has_no_share_of_its_bound(self):
        def moved(**more):
            return {"agreement": "failed", "drift": [{"tensor": "out", "rows_moved": 1, "rows": 4, "stored_elements_moved": 2,
                                                      "ulp": 1, "where": "row 0", **more}]}
        dom = self.quiet(self.page_of(report(case("a/b/eager", golden=moved(rejected=True)))))
        self.assertIn("rejected by the reference", dom)
        self.assertNotIn("within the last rounding", dom)
        self.assertIn("within the last rounding", self.quiet(self.page_of(report(case("a/b/eager", golden=moved(of_bound=0))))))

    def test_goldens_have_values_before_and_after(self):
        store = self.path("goldens")
        for platform in ("sim-sm90", "sim-gfx942"):
            self.plumb("golden", "regen", "--platform", platform, "--case", "mhc_pre/equal_logits", "--goldens", store, "--reason", "a test")
        self.plumb("golden", "diff", "sim-sm90", "sim-gfx942", "--goldens", store, "--json", self.path("diff.json"),
                   "--html", self.path("page.html"), code=1)
        with open(self.path("diff.json")) as file:
            drift = json.load(file)["cases"][0]["drift"]
        dom = self.quiet(self.path("page.html"))
        for part in ("before and after", "<th>before</th><th>after</th>", "wave order", "L2 norm", "stored elements by distance in ulp"):
            self.assertIn(part, dom)
        stored = next(one for one in drift if one["largest"])
        for value in stored["largest"][0][2:4]:
            self.assertIn(">" + repr(float(f"{value:.9g}")) + "<", dom)
        sketched = next(one for one in drift if one.get("estimated"))
        self.assertIn("about ", dom)
        self.assertIn(">" + repr(float(f"{sketched['was']['norm']:.9g}")).removesuffix(".0") + "<", dom)
        self.plumb("report", self.path("diff.json"), "-o", self.path("again.html"))
        self.assertIn("<th>before</th><th>after</th>", self.quiet(self.path("again.html")))

    def test_strange_goldens_make_a_page(self):
        strange = {"before": HOSTILE, "after": 3, "because_of": [1], "results": {"a": 1},
                   "cases": [{"case": HOSTILE, "change": "moved", "drift": [{}, 7, {"largest": [3, ["nan"], [{}, [], 1, 2, "inf"]], "was": {"norm": "x"},
                              "histogram": {"1": "many"}, "rejected": "yes"}]}, {"case": "a/b/c", "change": "new"}]}
        dom = self.quiet(self.page_of(strange))
        self.assertIn("a/b/c", dom)
        self.assertNotIn("<title>broken", dom)

    def test_a_cell_opens_to_its_cases(self):
        page = self.page_of(report(case("rms_norm/one/eager", "passed"), case("rms_norm/two/eager")))
        self.assertNotIn(">rms_norm/one/eager<", self.quiet(page))
        page = self.with_script(page, "document.querySelector('button.chip').click();")
        self.assertIn(">rms_norm/one/eager<", self.quiet(page))

    def test_the_filter_selects_cases(self):
        page = self.page_of(report(case("rms_norm/one/eager"), case("mhc_pre/two/eager")))
        page = self.with_script(page, "const box = document.querySelector('input'); box.value = 'mhc sm90';"
                                      "box.dispatchEvent(new Event('input'));")
        failures = self.quiet(page).split('id="grid"')[0]
        self.assertIn("mhc_pre/two/eager", failures)
        self.assertNotIn("rms_norm/one/eager", failures)

    def test_a_green_run_has_no_failures(self):
        dom = self.quiet(self.page_of(report(case("rms_norm/one/eager", "passed"))))
        self.assertIn("no case failed", dom)
        self.assertNotIn('id="failures"', dom)

    def test_several_reports_show_changes(self):
        good = case("rms_norm/one/eager", "passed")
        dom = self.quiet(self.page_of(report(good, case("rms_norm/two/eager", "passed")), report(case("rms_norm/one/eager"))))
        for part in ("Changes over 2 reports", "Newly failed: 1", "Vanished: 1", "1 cell with fewer compared cases"):
            self.assertIn(part, dom)

    def test_a_decode_step_has_a_timeline(self):
        findings = [{"detector": "reference", "step": 2, "position": 5, "op": "hc_head", "call": "head mix", "text": "wrong"},
                    {"detector": "state", "step": 1, "position": 9, "op": "mhc_pre", "call": "layer 0", "text": "wrong"}]
        dom = self.quiet(self.page_of(report(case("decode_step/v4/full", findings=findings))))
        self.assertIn("step 1, mhc_pre (layer 0)", dom)

    def test_faults_stand_beside_detectors(self):
        fault = {"name": "hc_eps_lost", "platform": "sim-sm90", "seen_by": "reference", "blind": "eager", "found": False,
                 "blamed_first": False, "findings": []}
        dom = self.quiet(self.page_of({"faults": [fault], "clean": [], "objections": ["one is missed"]}))
        self.assertIn("MISSED", dom)
        self.assertIn("one is missed", dom)

    def test_a_trace_has_a_timeline(self):
        wrong = {"call": "0/1/1", "op": "rms_norm", "rank": 0, "step": 1, "index": 1, "layer": 1, "failures": ["out: wrong"]}
        dom = self.quiet(self.page_of({"trace": "recording", "total": {"calls": 4, "failed": 1}, "wrong": [wrong],
                                       "ops": {"rms_norm": {"calls": 4}},
                                       "timeline": [{"rank": 0, "step": 0, "calls": ".."}, {"rank": 0, "step": 1, "calls": ".x"}]}))
        for part in ("call 0/1/1: failed", "plumb judge recording --call 0/1/1", "out: wrong", "rank 0, step 1"):
            self.assertIn(part, dom)


if __name__ == "__main__":
    if BROWSER is None:
        print("skipped: none of " + ", ".join(BROWSERS) + " is installed")
        sys.exit(77)
    PLUMB, PLUGINS = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
