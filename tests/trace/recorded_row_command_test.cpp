// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb run --cases with the file of a recorded call: which cases run, which kernels fail,
// which files are refused.
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"
#include "tests/support/rows_and_cases.h"
#include "tests/trace/recorded_call.h"

namespace plumb::tests {
namespace recorded_row_command_test {

class RecordedRowCommand : public CommandLine {
 protected:
  std::string file_of(const std::string& id, const std::string& name = "call.row") const {
    return write(name, cases::encode_recorded(RecordedInputs(cases::find_case(id)).file));
  }
  Words run_of(const std::string& file, const Words& more = {}) const {
    Words words{"run", "--cases", file, "--platform", "sim-sm90", "--tier", "smoke"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

std::string plugin(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
}

TEST_F(RecordedRowCommand, RunsTheRowsOfTheFileAlone) {
  const std::string file = file_of("rms_norm/v4_pro_hidden/eager");
  const Finished finished = run(run_of(file, {"--json", path("report.json")}));
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  const auto json = nlohmann::json::parse(contents(path("report.json")));
  EXPECT_GE(json["cases"].size(), 2u);
  for (const auto& one : json["cases"]) {
    EXPECT_EQ(one["case"].get<std::string>().find("rms_norm/recorded_"), 0u) << one["case"];
  }
  EXPECT_EQ(run({"run", "--cases", file, "--case", "rms_norm", "--tier", "smoke"}).code, 0)
      << "every simulated platform";
}

TEST_F(RecordedRowCommand, RunsSeveralFilesOfOneOp) {
  const std::string one = file_of("rms_norm/v4_pro_hidden/eager", "one.row");
  const std::string other = file_of("rms_norm/hidden_769/eager", "other.row");
  const auto cases_of = [&](const Words& more) {
    const Finished finished = run(run_of(one, more));
    EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
    return nlohmann::json::parse(contents(path("report.json")))["cases"].size();
  };
  const std::size_t alone = cases_of({"--json", path("report.json")});
  EXPECT_GT(cases_of({"--json", path("report.json"), "--cases", other}), alone);
  EXPECT_EQ(cases_of({"--json", path("report.json"), "--cases", one}), alone)
      << "the same call twice is one row";
  std::filesystem::remove(path("report.json"));
  const std::string rows =
      write("rows.toml", "op = \"rms_norm\"\n[[row]]\nname = \"x\"\nwhy = \"x\"\n");
  expect_refused(run_of(one, {"--cases", rows}), "rows.toml: a second file for rms_norm");
}

TEST_F(RecordedRowCommand, HasGoldensInAStoreOfItsOwn) {
  const std::string one = file_of("rms_norm/v4_pro_hidden/eager", "one.row");
  const std::string other = file_of("rms_norm/hidden_769/eager", "other.row");
  const Words store{"--goldens", path("goldens")};
  const auto regenerate = [&](const std::string& file, const Words& more) {
    Words words{"golden", "regen",  "--platform", "sim-sm90", "--reason",
                "a test", "--case", "rms_norm/*", "--cases",  file};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  expect_refused({"golden", "check", "--platform", "sim-sm90", "--cases", one},
                 "--cases needs --goldens FOLDER");
  EXPECT_NE(regenerate(one, store).out.find("1 cases, 1 of them changed"), std::string::npos);
  EXPECT_NE(regenerate(other, store).out.find("2 cases, 1 of them changed"), std::string::npos)
      << "the golden of another file stays";
  const Words compared{"--goldens", path("goldens"), "--json", path("report.json")};
  EXPECT_EQ(run(run_of(one, compared)).code, 0);
  EXPECT_NE(contents(path("report.json")).find("\"agreement\": \"same\""), std::string::npos);
  Words by_another = compared;
  by_another.insert(by_another.end(), {"--plugin", plugin("launches_other_bits")});
  EXPECT_EQ(run(run_of(one, by_another)).code, 0) << "another implementation may drift";
  EXPECT_NE(contents(path("report.json")).find("implementation plug-in launches (recorded: plumb "),
            std::string::npos);
}

TEST_F(RecordedRowCommand, JudgesPlugIns) {
  const std::string file = file_of("rms_norm/v4_pro_hidden/eager");
  const Finished right = run(run_of(file, {"--plugin", plugin("launches_right")}));
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  const Finished wrong = run(run_of(file, {"--plugin", plugin("launches_ignores_weight")}));
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  EXPECT_NE(wrong.out.find("recorded fill"), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("reproduce: plumb run --case rms_norm/recorded_"), std::string::npos)
      << wrong.out;
  EXPECT_NE(wrong.out.find(" --cases " + file), std::string::npos) << wrong.out;
}

TEST_F(RecordedRowCommand, RefusesWhatIsNoFileOfACall) {
  const std::string whole = contents(file_of("rms_norm/hidden_769/eager"));
  expect_refused(run_of(path("absent.row")), "absent.row: No such file or directory");
  expect_refused(run_of(write("cut.row", whole.substr(0, whole.size() - 1))),
                 "cut.row: damaged, cut or edited");
  std::string edited = whole;
  edited.replace(edited.find("\"tokens\":6"), 10, "\"tokens\":5");
  expect_refused(run_of(write("edited.row", edited)), "edited.row: damaged, cut or edited");
  const Finished other = run(run_of(write("other.row", with_own_digest(edited))));
  EXPECT_EQ(other.code, 2) << other.out;
}

TEST_F(RecordedRowCommand, KeepsChosenRows) {
  const std::string file = file_of("rms_norm/hidden_769/eager");
  const auto settings = [&](const std::string& setting) {
    return run_of(file, {"--set", setting});
  };
  for (const char* setting : {"tokens=4", "tokens=1", "keep_rows=3", "keep_rows=0,2-5"}) {
    EXPECT_EQ(run(settings(setting)).code, 0) << setting;
  }
  expect_refused(settings("tokens=7"), "call.row: tokens = 7: 6 are recorded");
  expect_refused(settings("keep_rows=6"), "call.row: no recorded row is kept");
  for (const char* list : {"3,2", "x", "-1", "1-", "2-1", "1,,2", "99999999999", "0-99999999"}) {
    expect_refused(settings(std::string("keep_rows=") + list), "keep_rows is ascending numbers");
  }
  expect_refused(settings("hidden=64"), "call.row: rms_norm: x has the shape [6, 769]");
}

// With hostile indices the kernel or the reference may access foreign memory. That happens in a
// worker process, and the run reports it.
TEST_F(RecordedRowCommand, SurvivesHostileIndices) {
  for (const char* id : {"dequantize_and_gather_k_cache/window_edges/eager",
                         "sparse_mla_prefill/edge_lengths/eager", "hash_routing/v4_flash/eager"}) {
    SCOPED_TRACE(id);
    const RecordedInputs inputs(cases::find_case(id));
    cases::RecordedFile hostile = inputs.file;
    const std::vector<std::byte> large(std::size_t{1} << 24, std::byte{0x3f});
    for (cases::RecordedTensor& tensor : hostile.tensors) {
      const bool counts = tensor.dtype == cases::Dtype::i32 || tensor.dtype == cases::Dtype::i64;
      if (counts) tensor.bytes = std::span(large).first(tensor.bytes.size());
    }
    const Finished finished = run(run_of(write("hostile.row", cases::encode_recorded(hostile))));
    EXPECT_TRUE(finished.code == 1 || finished.code == 2) << finished.code << finished.err;
    EXPECT_LT(finished.err.size() + finished.out.size(), 20000u);
  }
}

}  // namespace recorded_row_command_test
}  // namespace plumb::tests
