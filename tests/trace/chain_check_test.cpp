// SPDX-License-Identifier: Apache-2.0
//
// Tests the check of chains: one call wrote a memory range and a later call read it.
#include "trace/chain_check.h"

#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"
#include "tests/trace/example_trace.h"

namespace plumb::tests {
namespace chain_check_test {

using trace::ChainReport;
using Json = ExampleStep::Json;

class ChainCheck : public CommandLine {
 protected:
  std::string step_path() const {
    std::filesystem::create_directories(folder_ / "trace" / "rank-0");
    return path("trace/rank-0/step-000000.h5");
  }

  ChainReport checked(const ExampleStep& step) const {
    step.write(step_path());
    const trace::StepBytes bytes(step_path());
    return check_chains(trace::parse_step(bytes.text(), step_path()), bytes);
  }

  // A call that read `in` and wrote `out` at byte offsets of one storage.
  static Json& call(ExampleStep& step, std::int64_t in_at, const std::vector<float>& in,
                    std::int64_t out_at, const std::vector<float>& out) {
    Json& call = step.unknown(in, out);
    put(call["before"]["in"], in_at);
    put(call["after"]["out"], out_at);
    return call;
  }
  static void put(Json& tensor, std::int64_t offset) {
    tensor["storage"] = 7;
    tensor["offset"] = offset;
  }
};

TEST_F(ChainCheck, TheSameBytesAreNoFinding) {
  ExampleStep step;
  call(step, 0, {1, 2}, 64, {3, 4});
  call(step, 64, {3, 4}, 128, {5, 6});
  const ChainReport report = checked(step);
  EXPECT_EQ(report.checked, 1);
  EXPECT_EQ(report.broken, 0);
}

TEST_F(ChainCheck, OtherBytesAreFound) {
  ExampleStep step;
  call(step, 0, {1, 2}, 64, {3, 4});
  call(step, 64, {3, 5}, 128, {5, 6});
  const ChainReport report = checked(step);
  EXPECT_EQ(report.broken, 1);
  EXPECT_FALSE(report.certain);
  ASSERT_EQ(report.found.size(), 1u);
  const trace::BrokenChain& chain = report.found[0];
  EXPECT_EQ(chain.writer.index, 0);
  EXPECT_EQ(chain.reader.index, 1);
  EXPECT_EQ(chain.wrote, "out");
  EXPECT_EQ(chain.read, "in");
  EXPECT_EQ(chain.elements, 1);
  EXPECT_EQ(chain.of_elements, 2);
  EXPECT_EQ(chain.bytes, 1);  // 4 is 0x40800000, 5 is 0x40a00000
  EXPECT_EQ(chain.first, "[1]");
}

// Changes to a write and the read after it that leave nothing to compare (0 checked): the memory
// ranges differ, or the data is missing. Controls (1 checked) leave the pair comparable.
TEST_F(ChainCheck, WhatIsNotComparable) {
  const auto checks = [&](const auto& change) {
    ExampleStep step;
    call(step, 0, {1, 2}, 64, {3, 4});
    call(step, 64, {3, 5}, 128, {5, 6});
    change(step.json["calls"][0]["after"]["out"], step.json["calls"][1]["before"]["in"]);
    return checked(step).checked;
  };
  EXPECT_EQ(checks([](Json&, Json&) {}), 1);
  EXPECT_EQ(checks([](Json&, Json& in) { in["storage"] = 8; }), 0);
  EXPECT_EQ(checks([](Json&, Json& in) { in["offset"] = 68; }), 0);
  EXPECT_EQ(checks([](Json&, Json& in) { in["shape"] = {1, 2}; }), 0);
  EXPECT_EQ(checks([](Json&, Json& in) { in["strides"] = {2}; }), 0);
  EXPECT_EQ(checks([](Json&, Json& in) { in["strides"] = {1}; }), 1);
  EXPECT_EQ(checks([](Json&, Json& in) { in["dtype"] = "i32"; }), 0);
  EXPECT_EQ(checks([](Json& out, Json&) { out.erase("data"); }), 0);
  EXPECT_EQ(checks([](Json& out, Json&) { out.erase("storage"); }), 0);
}

TEST_F(ChainCheck, ALaterWriteToTheMemoryCounts) {
  ExampleStep step;
  call(step, 0, {1, 2}, 64, {3, 4});
  call(step, 0, {1, 2}, 64, {7, 8});
  call(step, 64, {7, 8}, 128, {5, 6});
  EXPECT_EQ(checked(step).broken, 0);
  // A write with another layout overlaps the range: its bytes are unknown.
  step.json["calls"][1]["after"]["out"]["offset"] = 68;
  EXPECT_EQ(checked(step).checked, 0);
  step.json["calls"][1]["after"]["out"]["offset"] = 72;
  EXPECT_EQ(checked(step).broken, 1) << "behind the tensor";
}

TEST_F(ChainCheck, StridedTensorsReachToTheirLastElement) {
  ExampleStep step;
  call(step, 0, {1, 2}, 64, {3, 4})["after"]["out"]["strides"] = {8};
  call(step, 0, {1, 2}, 96, {7, 8});
  call(step, 64, {3, 5}, 128, {5, 6})["before"]["in"]["strides"] = {8};
  EXPECT_EQ(checked(step).checked, 0);
  step.json["calls"][1]["after"]["out"]["offset"] = 100;
  EXPECT_EQ(checked(step).checked, 1);
  for (const std::size_t i : {0, 2}) {
    Json& tensor =
        i == 0 ? step.json["calls"][0]["after"]["out"] : step.json["calls"][2]["before"]["in"];
    tensor["strides"] = {std::int64_t{1} << 47};
  }
  EXPECT_EQ(checked(step).checked, 0) << "it reaches over all that follows";
}

// An outer call began first, and its inner call wrote after the outer call had read.
TEST_F(ChainCheck, CallsMayLieWithinEachOther) {
  ExampleStep step;
  call(step, 0, {1, 2}, 64, {3, 4});
  call(step, 64, {3, 4}, 64, {7, 8});                // inner call, in place
  call(step, 64, {3, 4}, 128, {5, 6})["began"] = 1;  // outer call
  EXPECT_EQ(checked(step).checked, 2);
  EXPECT_EQ(checked(step).broken, 0);
  step.json["calls"][2].erase("began");
  EXPECT_EQ(checked(step).broken, 1);
}

TEST_F(ChainCheck, BlocksOfACacheAreComparedOneByOne) {
  ExampleStep step;
  const auto blocks = [&](Json& tensor, std::vector<std::int64_t> numbers) {
    tensor["shape"] = {9, 2};
    tensor["blocks"] = std::move(numbers);
  };
  // Blocks 4 and 7 are written, then 7 once more. Block 1 was written before the step.
  blocks(call(step, 0, {1, 2}, 64, {1, 2, 3, 4})["after"]["out"], {4, 7});
  blocks(call(step, 0, {1, 2}, 64, {5, 6})["after"]["out"], {7});
  blocks(call(step, 64, {9, 9, 1, 2, 5, 6}, 0, {0})["before"]["in"], {1, 4, 7});
  EXPECT_EQ(checked(step).checked, 2);
  EXPECT_EQ(checked(step).broken, 0);
  blocks(call(step, 64, {1, 2, 3, 4}, 0, {0})["before"]["in"], {4, 7});
  const ChainReport report = checked(step);
  ASSERT_EQ(report.broken, 1);
  EXPECT_EQ(report.found[0].writer.index, 1);
  EXPECT_EQ(report.found[0].first, "[7, 0]");
  EXPECT_EQ(report.found[0].elements, 2);
  EXPECT_EQ(report.found[0].of_elements, 2);
}

TEST_F(ChainCheck, AFailureOnlyIfTheStepIsComplete) {
  ExampleStep step;
  step.norm();
  call(step, 0, {1, 2}, 64, {3, 4});
  call(step, 64, {3, 5}, 128, {5, 6});
  step.json["calls"].erase(0);
  step.norm();  // adds a call that can be judged
  const Json memory{{"x", 1000}, {"weight", 2000}, {"out", 3000}};
  for (const char* part : {"before", "after"}) {
    for (auto& [name, tensor] : step.json["calls"][2][part].items()) {
      put(tensor, memory[name].get<std::int64_t>());
    }
  }
  step.write(step_path());
  const Finished note = run({"judge", path("trace")});
  EXPECT_EQ(note.code, 0) << note.err;
  EXPECT_NE(
      note.out.find("1 of them in steps that may have unrecorded writes, so they do not fail. The "
                    "first is in of call 0/0/1 (aten::softmax): 1 of 2 elements differ"),
      std::string::npos)
      << note.out;
  step.json["complete"] = true;
  step.write(step_path());
  const Finished failure =
      run({"judge", path("trace"), "--json", path("j.json"), "--junit", path("j.xml")});
  EXPECT_EQ(failure.code, 1);
  EXPECT_EQ(failure.out.find("FIRST BROKEN CHAIN  step 0, call 1 of 3: aten::softmax, eager\n"), 0u)
      << failure.out;
  const auto json = nlohmann::json::parse(contents(path("j.json")));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["chains"]["failed"], 1);
  EXPECT_EQ(json["chains"]["found"][0]["writer"], "0/0/0");
  EXPECT_EQ(json["chains"]["found"][0]["certain"], true);
  EXPECT_NE(contents(path("j.xml"))
                .find("<testcase name=\"chains\" classname=\"trace\">\n      <failure"),
            std::string::npos);
  step.json["calls"][0]["after"]["out"].erase("storage");
  step.json["calls"].push_back(step.json["calls"][1]);
  step.write(step_path());
  EXPECT_EQ(run({"judge", path("trace")}).code, 0) << "a write without a place may be anywhere";
}

TEST_F(ChainCheck, MembersOfAnotherFormAreRefused) {
  ExampleStep step;
  step.norm();
  step.json["complete"] = 1;
  step.write(step_path());
  expect_refused({"judge", path("trace")}, "complete: not true or false");
  step.json["complete"] = true;
  step.json["calls"][0]["began"] = 1;
  step.write(step_path());
  expect_refused({"judge", path("trace")}, "began: more calls than had ended");
}

}  // namespace chain_check_test
}  // namespace plumb::tests
