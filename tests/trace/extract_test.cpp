// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb judge --extract, which writes a recorded call of any op, with the bytes that it read,
// as a row of the op's cases: a wrong kernel fails on it.
#include "trace/export/extract.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "cases/recorded/recorded_file.h"
#include "tests/support/command_line.h"
#include "tests/support/rows_and_cases.h"
#include "tests/trace/example_trace.h"
#include "tests/trace/recorded_call.h"

namespace plumb::tests {
namespace extract_test {

std::string plugin(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
}

// Adds a call with these inputs. Its outputs are zeros, because extraction does not judge them.
void add_call(const RecordedInputs& inputs, ExampleStep& step) {
  ExampleStep::Json call{{"op", inputs.file.op}, {"scalars", inputs.scalars()}};
  const auto add = [&](const std::string& side, std::string name,
                       const cases::RecordedTensor& tensor) {
    const std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    ExampleStep::Json& made = call[side][name];
    made = step.tensor(std::string(name_of(tensor.dtype)), tensor.shape, bytes);
    if (tensor.blocks) made["blocks"] = *tensor.blocks;
    if (bytes.empty()) made.erase("data");
  };
  constexpr std::string_view kBefore = "_before";
  for (const cases::RecordedTensor& tensor : inputs.file.tensors) {
    std::string name = tensor.name;
    if (name.ends_with(kBefore)) name.resize(name.size() - kBefore.size());
    add("before", name, tensor);
  }
  for (const cases::RecordedTensor& tensor : inputs.outputs) add("after", tensor.name, tensor);
  step.json["calls"].push_back(std::move(call));
}

// The lines of the row's file, without those that identify the recording.
std::set<std::string> settings_of(const std::string& bytes) {
  std::set<std::string> lines;
  std::istringstream text(cases::decode_recorded(bytes, "call.row").case_file);
  for (std::string line; std::getline(text, line);) {
    const bool is_name =
        line.starts_with("name =") || line.starts_with("why =") || line.starts_with("recorded =");
    if (!is_name) lines.insert(line);
  }
  return lines;
}

class ExtractCommand : public CommandLine {
 protected:
  std::string trace(const ExampleStep& step) const {
    std::filesystem::create_directories(folder_ / "trace" / "rank-0");
    step.write(path("trace/rank-0/step-000000.h5"));
    return path("trace");
  }
  Finished extract(const ExampleStep& step, const std::string& call, const Words& more = {}) const {
    Words words{"judge", trace(step), "--extract", call, "--output", path("call.row")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Words run_of(const Words& more) const {
    Words words{"run", "--cases", path("call.row"), "--platform", "sim-sm90", "--tier", "smoke"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(ExtractCommand, OfEveryOpHasTheRecordedBytes) {
  std::set<std::string_view> seen;
  for (const cases::Case& source : smoke_cases()) {
    if (!seen.insert(source.op->name).second) continue;
    SCOPED_TRACE(source.id());
    const RecordedInputs inputs(source);
    ExampleStep step;
    add_call(inputs, step);
    const std::string file = trace(step) + "/rank-0/step-000000.h5";
    const trace::StepBytes bytes(file);
    const trace::ExtractAnswer answer =
        trace::extract_call(trace::parse_step(bytes.text(), file), 0, bytes);
    ASSERT_EQ(answer.why_not, "");
    EXPECT_EQ(answer.row.find(std::string(source.op->name) + "/recorded_"), 0u) << answer.row;
    const cases::RecordedFile call = cases::decode_recorded(answer.file, "call.row").call;
    std::set<std::string> names;
    for (const cases::RecordedTensor& tensor : call.tensors) {
      const auto of_case =
          std::ranges::find(inputs.file.tensors, tensor.name, &cases::RecordedTensor::name);
      ASSERT_NE(of_case, inputs.file.tensors.end()) << tensor.name;
      EXPECT_EQ(tensor.shape, of_case->shape) << tensor.name;
      EXPECT_TRUE(std::ranges::equal(tensor.bytes, of_case->bytes)) << tensor.name;
      names.insert(tensor.name);
    }
    EXPECT_EQ(names.size(), inputs.file.tensors.size());
    const auto wanted = settings_of(cases::encode_recorded(inputs.file));
    const auto found = settings_of(answer.file);
    EXPECT_TRUE(std::ranges::includes(found, wanted))
        << testing::PrintToString(found) << testing::PrintToString(wanted);
  }
  EXPECT_EQ(seen.size(), cases::all_ops().size());
}

TEST_F(ExtractCommand, WritesARowThatRunsAndFailsForAWrongKernel) {
  ExampleStep step;
  step.norm();
  step.norm(0.1, 3);
  const Finished finished = extract(step, "0/0/1");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("rms_norm/recorded_"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("plumb run --cases " + path("call.row") + "\n"), std::string::npos)
      << finished.out;
  EXPECT_EQ(run(run_of({})).code, 0) << "plumb's own kernel is right on these inputs";
  EXPECT_EQ(run(run_of({"--plugin", plugin("launches_right")})).code, 0);
  const Finished wrong = run(run_of({"--plugin", plugin("launches_ignores_weight")}));
  EXPECT_EQ(wrong.code, 1) << wrong.out;
  EXPECT_EQ(contents(path("call.row")).find("plumb recorded row 1 "), 0u);
  EXPECT_NE(contents(path("call.row"))
                .find("Call 0/0/1 of a trace: Norm.forward, layer 3, engine example."),
            std::string::npos);
}

// A kernel that ignores the weight is right on rows of zeros, so only row 17 fails. One right row
// stays beside it.
TEST_F(ExtractCommand, WritesARowThatBisectCaseMakesSmaller) {
  constexpr std::int64_t kRows = 24, kColumns = 64, kWrong = 17;
  std::vector<std::uint16_t> x(kRows * kColumns), weight(kColumns, 0x3fa0);  // 1.25
  for (std::int64_t i = 0; i < kColumns; ++i) {
    x[static_cast<std::size_t>(kWrong * kColumns + i)] = static_cast<std::uint16_t>(0x3f80 + i);
  }
  ExampleStep step;
  ExampleStep::Json& call = step.norm();
  call["before"] = {{"x", step.tensor("bf16", {kRows, kColumns}, x)},
                    {"weight", step.tensor("bf16", {kColumns}, weight)}};
  call["after"] = {{"out", step.tensor("bf16", {kRows, kColumns}, x)}};
  const std::string row = extract(step, "0/0/0").out;
  const std::size_t name = row.find("rms_norm/");
  const Finished smaller =
      run({"bisect", "case", row.substr(name, row.find('\n') - name) + "/eager", "--cases",
           path("call.row"), "--platform", "sim-sm90", "--plugin",
           plugin("launches_ignores_weight"), "--state", ""});
  EXPECT_EQ(smaller.code, 0) << smaller.err;
  EXPECT_NE(smaller.out.find(" --set keep_rows=16-17\n"), std::string::npos) << smaller.out;
  EXPECT_EQ(
      run(run_of({"--plugin", plugin("launches_ignores_weight"), "--set", "keep_rows=17"})).code,
      1);
}

// toml++ has an assertion that this text violates.
TEST_F(ExtractCommand, AMalformedFileOfRowsIsOneLine) {
  const std::string file = write("rows.toml", "op = \"rms_norm\"\n[[row]]\n[[[name = \"x\"\n");
  expect_refused({"list", "--cases", file}, "rows.toml: is not TOML");
}

TEST_F(ExtractCommand, ARowThatIsNotMeasuredIsOneLine) {
  ExampleStep step;
  step.norm();
  extract(step, "0/0/0");
  expect_refused({"invariance", "--cases", path("call.row")},
                 "no selected row is measured by default");
}

TEST_F(ExtractCommand, HasItsDigestInItsName) {
  ExampleStep step;
  step.norm();
  const std::string first = extract(step, "0/0/0").out;
  const std::string bytes = contents(path("call.row"));
  EXPECT_EQ(extract(step, "0/0/0").out, first);
  EXPECT_EQ(contents(path("call.row")), bytes);
  const std::string digits = bytes.substr(std::string("plumb recorded row 1 ").size(), 12);
  EXPECT_NE(first.find("rms_norm/recorded_" + digits), std::string::npos) << first;
}

TEST_F(ExtractCommand, SaysWhyACallHasNoRow) {
  ExampleStep step;
  step.norm();
  step.unknown({1}, {2});
  step.norm()["before"]["x"].erase("data");
  step.norm()["before"]["y"] = step.json["calls"][0]["before"]["x"];
  const std::string folder = trace(step);
  const auto refused = [&](const std::string& call, const std::string& says) {
    expect_refused({"judge", folder, "--extract", call, "--output", path("call.row")}, says);
    EXPECT_FALSE(std::filesystem::exists(path("call.row")));
  };
  refused("0/0/1", "call 0/0/1 cannot be extracted: plumb has no such op");
  refused("0/0/2", "call 0/0/2 cannot be extracted: the values of x were not recorded");
  refused("0/0/3", "there is no y");
  refused("0/0/9", "the trace has no call 0/0/9");
  refused("3/0/0", "the trace has no call 3/0/0");
  refused("0/0", "--extract 0/0: a call is RANK/STEP/NUMBER, as 0/3/41");
  refused("", "a call is RANK/STEP/NUMBER");
  refused("0/0/-1", "a call is RANK/STEP/NUMBER");
  refused("0/0/0/0", "a call is RANK/STEP/NUMBER");
  refused("99999999999999999999/0/0", "a call is RANK/STEP/NUMBER");
  expect_refused({"judge", folder, "--extract", "0/0/0", "--output", path("no/where.row")},
                 "there is no folder");
  expect_refused({"judge", path("absent"), "--extract", "0/0/0"}, "No such file or directory");
  expect_refused({"judge", folder, "--output", path("call.row")}, "--output requires --extract");
  expect_refused({"judge", folder, "--extract", "0/0/0", "--call", "0/0/0"},
                 "--extract judges nothing");
}

TEST_F(ExtractCommand, LeavesNothingHalfWritten) {
  ExampleStep step;
  step.norm();
  write("call.row", "something of the user's");
  const std::string limited = "ulimit -f 0; exec " PLUMB_BINARY " judge " + trace(step) +
                              " --extract 0/0/0 --output " + path("call.row") + " 2>" + path("err");
  const int code = std::system(("bash -c '" + limited + "' >/dev/null").c_str());
  EXPECT_NE(WEXITSTATUS(code), 0);
  EXPECT_EQ(contents(path("call.row")), "something of the user's");
}

}  // namespace extract_test
}  // namespace plumb::tests
