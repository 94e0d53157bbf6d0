// SPDX-License-Identifier: Apache-2.0
//
// plumb report: checks the page as a file. report_page_test.py opens pages in a browser.
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

namespace plumb {
namespace report_command_test {

using nlohmann::json;

class ReportCommand : public CommandLine {
 protected:
  static json failed_case(const std::string& id) {
    return {{"case", id},
            {"platform", "sim-sm90"},
            {"outcome", "failed"},
            {"comparisons", 1},
            {"reproduce", "plumb run --case " + id},
            {"diagnosis", "looks like: x"},
            {"failures", {{{"context", "step 0"}, {"lines", {"out: 1 of 1 rows (row 0) wrong"}}}}}};
  }
  static json report_of(const json& cases) {
    return {{"schema", 1},
            {"tier", "smoke"},
            {"outcomes", {{"failed", cases.size()}}},
            {"cases", cases}};
  }
  // Makes the page of one report. The command must succeed.
  std::string page_of(const json& report) const {
    const std::string file = write("one.json", report.dump());
    const Finished finished = run({"report", file, "-o", path("page.html")});
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(finished.out + finished.err, "");
    return contents(path("page.html"));
  }
  // The data that the page's script reads.
  static json data_of(const std::string& page) {
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const std::size_t at = page.find(begin) + begin.size();
    return json::parse(page.substr(at, page.find("</script>", at) - at));
  }
  void expect_no_page(const std::string& text, const std::string& says) const {
    const std::string file = write("bad.json", text);
    expect_refused({"report", file, "-o", path("page.html")}, file + ": " + says);
    EXPECT_FALSE(std::filesystem::exists(path("page.html")));
  }
};

TEST_F(ReportCommand, ARunBecomesAPageWithItsFailures) {
  ASSERT_EQ(
      run({"run", "--plugin", std::string(PLUMB_TEST_PLUGINS) + "/launches_ignores_weight.so",
           "--platform", "sim-sm90", "rms_norm/hidden_257/eager", "--json", path("report.json")})
          .code,
      1);
  ASSERT_EQ(run({"report", path("report.json"), "-o", path("page.html")}).code, 0);
  const std::string page = contents(path("page.html"));
  const json data = data_of(page);
  ASSERT_EQ(data["cases"].size(), 1u);
  EXPECT_EQ(data["cases"][0]["outcome"], "failed");
  EXPECT_EQ(data["platforms"], json({"sim-sm90"}));
  const json& details = data["cases"][0]["details"];
  EXPECT_NE(details["diagnosis"].get<std::string>().find("ignores weight"), std::string::npos);
  EXPECT_EQ(details["reproduce"],
            json::parse(contents(path("report.json")))["cases"][0]["reproduce"]);
  // The page has the failure also without JavaScript.
  const std::size_t text = page.find("<noscript>\n<h1>");
  ASSERT_NE(text, std::string::npos);
  EXPECT_NE(page.find("reproduce: plumb run --case rms_norm/hidden_257/eager", text),
            std::string::npos);
  // The page needs no network: its only address is SVG's namespace.
  std::size_t addresses = 0;
  for (auto at = page.find("://"); at != std::string::npos; at = page.find("://", at + 1))
    ++addresses;
  EXPECT_EQ(addresses, 1u);
}

TEST_F(ReportCommand, RefusesWhatIsNoReport) {
  expect_no_page("", "not JSON: it ends at byte 0");
  expect_no_page("{\"cases\": [", "not JSON: it ends at byte 11");
  expect_no_page("root:x:0:0", "not JSON from byte 1 on");
  expect_no_page("{\"schema\": 1e999}", "not JSON: a number is too large");
  expect_no_page("[]", "not a report of plumb: not a JSON object");
  expect_no_page("{\"faults\": 3}", "not a report of plumb run (");
  expect_no_page("{\"cases\": {}, \"outcomes\": {}}", "not a report of plumb run (");
  expect_no_page(R"({"outcomes": {}, "cases": [{"case": "a/b/c", "platform": "p"}]})",
                 "cases[0] has no text \"outcome\"");
  expect_no_page(R"({"outcomes": {}, "cases": [7]})", "cases[0] has no text \"case\"");
  expect_refused({"report", path("missing.json"), "-o", path("page.html")}, "cannot read ");
  expect_refused({"report", path(""), "-o", path("page.html")}, "it is a folder");
  expect_refused({"report"}, "REPORT");
  const std::string good = write("good.json", report_of(json::array()).dump());
  expect_refused({"report", good}, "--output");
  expect_refused({"report", good, "-o", good}, "-o names a report that is read");
  expect_refused({"report", good, "-o", path("no/page.html")}, "there is no folder");
}

TEST_F(ReportCommand, AnEarlierPageStaysWhereARefusedReportComes) {
  write("page.html", "earlier");
  const std::string bad = write("bad.json", "{");
  EXPECT_EQ(run({"report", bad, "-o", path("page.html")}).code, 2);
  EXPECT_EQ(contents(path("page.html")), "earlier");
}

TEST_F(ReportCommand, MembersOfOtherTypesAreLeftOut) {
  json one = failed_case("a/b/c");
  one["failures"] = {7, {{"lines", "x"}, {"tensors", {{{"worst", 3}}}}}};
  one["tensors"] = {{"margin", 1}};
  one["seconds"] = "long";
  one["golden"] = json::array();
  one["contrast"] = {1, "words"};
  EXPECT_EQ(data_of(page_of(report_of(json::array({one}))))["cases"][0]["details"]["contrast"],
            json({"words"}));
}

TEST_F(ReportCommand, HostileTextsStayText) {
  const std::string name = "a</script><script>alert(1)</script><!--/b@DATA@\x01/c\xe2\x80\xae";
  json one = failed_case(name);
  one["failures"][0]["lines"][0] = "</noscript><img src=x onerror=alert(2)>";
  const std::string page = page_of(report_of(json::array({one})));
  EXPECT_EQ(data_of(page)["cases"][0]["case"], name);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
}

TEST_F(ReportCommand, ThousandsOfFailuresFitIn5MB) {
  json cases = json::array();
  for (int i = 0; i < 6000; ++i) {
    cases.push_back(failed_case("rms_norm/row_" + std::to_string(i) + "/eager"));
    cases.back()["failures"][0]["lines"][0] = std::string(4000, 'x');
  }
  const std::string page = page_of(report_of(cases));
  EXPECT_LT(page.size(), 5'000'000u);
  const json data = data_of(page);
  EXPECT_EQ(data["cases"].size(), 6000u);
  EXPECT_GT(data["details_left_out"], 1000);
  EXPECT_TRUE(data["cases"][0].contains("details"));
}

TEST_F(ReportCommand, ARunWritesItsPageWithPicturesOfWrongTensors) {
  const Words words{
      "run",           "--plugin", std::string(PLUMB_TEST_PLUGINS) + "/launches_ignores_weight.so",
      "--platform",    "sim-sm90", "rms_norm/hidden_257/eager",
      "--no-diagnosis"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(run(with({"--json", path("report.json"), "--html", path("page.html")})).code, 1);
  const json reported = json::parse(contents(path("report.json")))["cases"][0]["pictures"];
  ASSERT_EQ(reported.size(), 1u);
  const json& picture = reported[0];
  EXPECT_EQ(picture["tensor"], "out");
  EXPECT_EQ(picture["columns"], 257);
  EXPECT_EQ(picture["cells"].size(), picture["rows"]);
  EXPECT_EQ(picture["cells"][0].get<std::string>().size(), 64u);
  EXPECT_FALSE(picture["worst"].empty());
  const json shown = data_of(contents(path("page.html")))["cases"][0]["details"]["pictures"][0];
  EXPECT_EQ(shown["cells"], picture["cells"]);
  EXPECT_EQ(shown["levels"], picture["levels"]);
  std::filesystem::remove(path("report.json"));
  expect_refused(with({"--json", path("report.json"), "--html", path("report.json")}),
                 "--html names the file of another report");
  expect_refused(with({"--json", path("report.json"), "--html", path("no/page.html")}),
                 "there is no folder");
}

TEST_F(ReportCommand, SeveralReportsShowWhatChanged) {
  const auto with = [](json one, const char* outcome, int comparisons, double margin) {
    one["outcome"] = outcome;
    one["comparisons"] = comparisons;
    one["tensors"] = {{{"tensor", "out"}, {"margin", margin}}};
    return one;
  };
  const json a = failed_case("mhc_pre/a/eager"), b = failed_case("mhc_pre/b/eager");
  const json c = failed_case("mhc_pre/c/eager");
  const std::string old = write(
      "old.json",
      report_of({with(a, "passed", 1, 0.25), with(b, "failed", 1, 7), with(c, "passed", 1, 0.5)})
          .dump());
  const std::string now =
      write("new.json", report_of({with(a, "failed", 1, 9), with(b, "passed", 0, 0.75)}).dump());
  ASSERT_EQ(run({"report", old, now, "-o", path("page.html")}).code, 0);
  const json history = data_of(contents(path("page.html")))["history"];
  EXPECT_EQ(history["reports"].size(), 2u);
  EXPECT_EQ(history["newly_failed"]["cases"], json::parse(R"([["mhc_pre/a/eager", "sim-sm90"]])"));
  EXPECT_EQ(history["newly_passed"]["cases"], json::parse(R"([["mhc_pre/b/eager", "sim-sm90"]])"));
  EXPECT_EQ(history["vanished"]["count"], 1);
  EXPECT_EQ(history["added"]["count"], 0);
  EXPECT_EQ(history["margins"], json::parse(R"([["mhc_pre", "out", [0.5, 0.75]]])"));
  EXPECT_EQ(history["lost"], json::parse(R"([{"op": "mhc_pre", "scenario": "eager",
      "platform": "sim-sm90", "before": 3, "now": 1}])"));
  const std::string faults = write("faults.json", R"({"faults": [], "clean": []})");
  expect_refused({"report", faults, now, "-o", path("two.html")},
                 "several reports make a page if all are of plumb run");
}

TEST_F(ReportCommand, FaultsHaveAPage) {
  const json fault{{"name", "hc_eps_lost"},  {"platform", "sim-sm90"},
                   {"seen_by", "reference"}, {"blind", "eager"},
                   {"found", false},         {"findings", {{{"detector", "eager"}}}}};
  const std::string page = page_of(
      {{"faults", json::array({fault})}, {"clean", json::array()}, {"objections", {"missed one"}}});
  const json data = data_of(page);
  EXPECT_EQ(data["kind"], "faults");
  EXPECT_EQ(data["faults"][0]["seen"], json({"eager"}));
  EXPECT_NE(page.find("missed: hc_eps_lost on sim-sm90"), std::string::npos);
}

TEST_F(ReportCommand, SaysWhatWasRun) {
  json report = report_of(json::array());
  report["run"] = {{"commit", "abc"}, {"host", {{"name", "x"}}}};
  report["plugin"] = {{"name", "mine"}};
  const json run = data_of(page_of(report))["run"];
  EXPECT_EQ(run, json::parse(R"([["tier", "smoke"], ["commit", "abc"], ["plugin name", "mine"]])"));
}

}  // namespace report_command_test
}  // namespace plumb
