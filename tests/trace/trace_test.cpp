// SPDX-License-Identifier: Apache-2.0
//
// Tests what a trace may contain, which traces are refused, and which values of a call are judged.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "hdf5/digest.h"
#include "tests/trace/example_trace.h"
#include "trace/judge_call.h"
#include "trace/non_finite.h"

namespace plumb::tests {
namespace trace_test {

using trace::BadTrace;
using trace::CallReport;

class TraceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("plumb_trace_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "step-000000.h5").string(); }

  // Judges the last call.
  CallReport judged(const ExampleStep& step) const {
    step.write(path());
    const trace::StepBytes bytes(path());
    const trace::TraceStep parsed = trace::parse_step(bytes.text(), path());
    return trace::judge_call(parsed, parsed.calls.size() - 1, bytes);
  }

  std::string why_refused(const std::function<void()>& what) const {
    try {
      what();
    } catch (const BadTrace& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(TraceTest, ARightCallPasses) {
  ExampleStep step;
  step.norm();
  const CallReport report = judged(step);
  EXPECT_TRUE(report.passed()) << report.not_judged << testing::PrintToString(report.failures);
  EXPECT_GT(report.margin, 0.3);
  EXPECT_LE(report.margin, 1);
  EXPECT_EQ(report.op, "rms_norm");
  EXPECT_EQ(report.name, "Norm.forward");
}

TEST_F(TraceTest, AWrongCallFails) {
  ExampleStep step;
  step.norm(0.1);
  const CallReport report = judged(step);
  EXPECT_TRUE(report.failed());
  EXPECT_EQ(report.non_finite, "");
}

// Two of the four logits are equal in bf16.
TEST_F(TraceTest, ACallWithBf16LogitsIsJudged) {
  const auto judged_with = [&](const std::vector<std::int32_t>& indices) {
    ExampleStep step;
    const std::vector<std::uint16_t> logits = {0x3f80, 0x3f81, 0x3f80, 0xbf80};
    const std::vector<std::int32_t> lengths = {4};
    step.json["calls"].push_back({{"op", "top_k_per_row_decode"},
                                  {"name", "Indexer.forward"},
                                  {"scalars", {{"next_n", 1}}},
                                  {"before",
                                   {{"logits", step.tensor("bf16", {1, 4}, logits)},
                                    {"seq_lens", step.tensor("i32", {1, 1}, lengths)}}},
                                  {"after", {{"indices", step.tensor("i32", {1, 2}, indices)}}}});
    return judged(step);
  };
  EXPECT_TRUE(judged_with({1, 2}).passed()) << judged_with({1, 2}).not_judged;
  EXPECT_TRUE(judged_with({0, 1}).passed());
  EXPECT_TRUE(judged_with({0, 2}).failed());
}

TEST_F(TraceTest, WordsAndNumericsOfACallAreUsed) {
  ExampleStep step;
  ExampleStep::Json& call = step.norm();
  call["scalars"]["rounding"] = "twice";
  EXPECT_TRUE(judged(step).failed()) << "it rounds once";
  call["scalars"]["rounding"] = "thrice";
  EXPECT_NE(judged(step).not_judged.find("rounding"), std::string::npos);
  call["scalars"].erase("rounding");
  call["numerics"] = {{"accumulator", "bf16"}};
  const CallReport coarse = judged(step);
  EXPECT_LT(coarse.margin, 0.3) << "the bound is wider";
  call["numerics"] = {{"accumulator", "bf15"}};
  EXPECT_NE(judged(step).not_judged.find("accumulator is \"bf15\""), std::string::npos);
}

// A call that cannot be judged gives the reason, and does not pass.
TEST_F(TraceTest, WhatCannotBeJudgedSaysWhy) {
  ExampleStep step;
  step.unknown({1}, {2});
  EXPECT_EQ(judged(step).not_judged, "plumb has no such op");
  ExampleStep::Json& call = step.norm();
  const ExampleStep::Json right = call;
  call["before"]["x"].erase("data");
  EXPECT_EQ(judged(step).not_judged, "the values of x were not recorded");
  call = right;
  call["before"]["x"]["dtype"] = "f16";
  EXPECT_EQ(judged(step).not_judged, "x has elements of f16");
  call = right;
  call["before"]["y"] = right["before"]["x"];
  EXPECT_NE(judged(step).not_judged.find("there is no y"), std::string::npos);
  call = right;
  call["after"] = ExampleStep::Json::object();
  EXPECT_NE(judged(step).not_judged.find("out"), std::string::npos);
  call = right;
  call["after"]["out"]["shape"] = {64, 3};
  EXPECT_NE(judged(step).not_judged.find("has the shape"), std::string::npos);
  call = right;
  EXPECT_TRUE(judged(step).passed());
}

TEST_F(TraceTest, ConstantsComeFromTheirOwnFile) {
  ExampleStep step;
  step.norm();
  const std::string text = step.json.dump();
  step.json["calls"] = ExampleStep::Json::array();
  step.write((folder_ / "constants-000000.h5").string());
  ExampleStep().write(path(), text);  // a step file without tensor data
  const trace::StepBytes bytes(path());
  const trace::TraceStep parsed = trace::parse_step(bytes.text(), path());
  EXPECT_TRUE(trace::judge_call(parsed, 0, bytes).passed());
}

TEST_F(TraceTest, OnlyUnexplainedNaNIsReported) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  ExampleStep step;
  step.unknown({1, 2, 3}, {1, nan, infinity});
  EXPECT_EQ(judged(step).non_finite,
            "out: 2 elements are NaN or infinite, the first at [1], and no input has one");
  step.unknown({1, nan, 3}, {1, nan, 4});
  EXPECT_EQ(judged(step).non_finite, "") << "an input has one";
  step.unknown({1, 2, 3}, {1, -infinity, 4});
  EXPECT_EQ(judged(step).non_finite, "") << "a mask";
  step.unknown({1, -infinity, 3}, {1, nan, 4});
  EXPECT_NE(judged(step).non_finite, "") << "a mask explains no NaN";
  step.unknown({1, 2, 3}, {1, nan, 4})["before"]["in"].erase("data");
  EXPECT_EQ(judged(step).non_finite, "") << "it was not recorded";
}

// Rows 1, 3 and 4 of five are stored. The others are zeros, whose norm is zero and therefore right.
TEST_F(TraceTest, StoredBlocksStandAtTheirNumbers) {
  ExampleStep step;
  ExampleStep::Json& call = step.norm();
  ExampleStep::Json &x = call["before"]["x"], &out = call["after"]["out"];
  for (ExampleStep::Json* const tensor : {&x, &out}) {
    (*tensor)["shape"] = {5, 64};
    (*tensor)["blocks"] = {1, 3, 4};
  }
  EXPECT_TRUE(judged(step).passed());
  out["blocks"] = {0, 3, 4};
  EXPECT_TRUE(judged(step).failed());
  out["blocks"] = {1, 4, 3};
  EXPECT_NE(why_refused([&] { judged(step); }).find("not ascending numbers of blocks"),
            std::string::npos);
  out["blocks"] = {1, 3};
  EXPECT_NE(why_refused([&] { judged(step); }).find("too many"), std::string::npos);
}

TEST_F(TraceTest, ATextOfAnyOtherFormIsRefused) {
  ExampleStep step;
  step.norm();
  const std::vector<std::pair<std::string, std::string>> changes{
      {"/format", "not a trace of plumb"},
      {"/version", "version 7 of the format; this plumb reads 1"},
      {"/rank", "t.rank: is -1, less than 0"},
      {"/calls", "t.calls: not a list"},
      {"/provenance", "t.provenance: not an object"},
      {"/calls/0/before/x/dtype", "t.calls[0].before.x.dtype: no dtype of traces"},
      {"/calls/0/before/x/shape", "t.calls[0].before.x.shape: not a list"},
      {"/calls/0/before/x/shape/0", "too many elements"},
      {"/calls/0/before/x/data", "t.calls[0].before.x.data: not a digest"},
      {"/calls/0/layer", "t.calls[0].layer: not an integer of 64 bits"},
      {"/calls/0/scalars/eps", "t.calls[0].scalars.eps: not an integer"}};
  const std::map<std::string, ExampleStep::Json> values{
      {"/format", "other"},
      {"/version", 7},
      {"/rank", -1},
      {"/calls", 3},
      {"/provenance", "mine"},
      {"/calls/0/before/x/dtype", "f31"},
      {"/calls/0/before/x/shape", "3"},
      {"/calls/0/before/x/shape/0", std::int64_t{1} << 62},
      {"/calls/0/before/x/data", "abc"},
      {"/calls/0/layer", 1e300},
      {"/calls/0/scalars/eps", ExampleStep::Json::array()}};
  for (const auto& [where, says] : changes) {
    ExampleStep::Json changed = step.json;
    changed[ExampleStep::Json::json_pointer(where)] = values.at(where);
    const std::string why = why_refused([&] { trace::parse_step(changed.dump(), "t"); });
    EXPECT_NE(why.find(says), std::string::npos) << where << ": " << why;
  }
  EXPECT_EQ(why_refused([] { trace::parse_step("{\"a\": ", "t"); }), "t: not JSON");
  EXPECT_EQ(why_refused([] { trace::parse_step("[]", "t"); }), "t: not an object");
}

TEST_F(TraceTest, ControlCharactersOfATextAreNotPrinted) {
  ExampleStep step;
  step.unknown({1}, {2});
  step.json["calls"][0]["name"] = "a\n\033[31mb";
  step.json["calls"][0]["scalars"] = {{"c\td", "\x7f"}};
  const trace::TraceStep parsed = trace::parse_step(step.json.dump(), "t");
  EXPECT_EQ(parsed.calls[0].name, "a??[31mb");
  EXPECT_EQ(std::get<std::string>(parsed.calls[0].scalars.at("c?d")), "?");
}

TEST_F(TraceTest, DamagedDataIsRefused) {
  ExampleStep step;
  const std::string digest = step.norm()["before"]["x"]["data"];
  step.write(path());
  std::string file;
  {
    std::ifstream in(path(), std::ios::binary);
    file.assign(std::istreambuf_iterator<char>(in), {});
  }
  // Flip one bit in the last element of x (384 bytes).
  const trace::StepBytes whole(path());
  const trace::TraceStep parsed = trace::parse_step(whole.text(), path());
  const trace::StoredBytes x = whole.of(parsed.calls[0].before.at("x"));
  const std::string stored(reinterpret_cast<const char*>(x.bytes.data()), x.bytes.size());
  const std::size_t at = file.find(stored);
  ASSERT_NE(at, std::string::npos);
  file[at + stored.size() - 1] ^= 1;
  const std::string damaged = (folder_ / "step-000001.h5").string();
  std::ofstream(damaged, std::ios::binary) << file;
  const trace::StepBytes bytes(damaged);
  const std::string why = why_refused([&] { trace::judge_call(parsed, 0, bytes); });
  EXPECT_NE(why.find(digest + ": its bytes are damaged"), std::string::npos) << why;
}

bool is_mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  const std::string all(std::istreambuf_iterator<char>(maps), {});
  return all.find(path) != std::string::npos;
}

// Large data is mapped from the file instead of copied: its pages can be dropped and are read again
// when needed.
TEST_F(TraceTest, LargeDataStaysInItsFile) {
  std::vector<std::byte> large((std::size_t{5} << 20) + 3), small(100);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 + i / 251);
  const std::string digest = hdf5::digest_of(large), few = hdf5::digest_of(small);
  trace::write_step_file(path(), "{}", {{digest, large}, {few, small}});
  {
    const trace::StepFile file(path());
    EXPECT_EQ(file.read(few, small.size()).bytes.size(), small.size());
    EXPECT_FALSE(is_mapped(path()));
    const trace::StoredBytes stored = file.read(digest, large.size());
    EXPECT_TRUE(is_mapped(path()));
    EXPECT_TRUE(std::ranges::equal(stored.bytes, large));
    stored.owner->leave_memory();
    EXPECT_TRUE(std::ranges::equal(stored.bytes, large));
  }
  EXPECT_FALSE(is_mapped(path()));
  std::string bytes;
  {
    std::ifstream in(path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::size_t last =
      bytes.find(std::string(reinterpret_cast<const char*>(large.data() + large.size() - 64), 64));
  ASSERT_NE(last, std::string::npos);
  bytes[last + 63] ^= 1;
  std::ofstream(path(), std::ios::binary) << bytes;
  const trace::StepFile damaged(path());
  const std::string why = why_refused([&] { damaged.read(digest, large.size()); });
  EXPECT_NE(why.find(digest + ": its bytes are damaged"), std::string::npos) << why;
}

TEST_F(TraceTest, DataOfAnotherLengthIsRefused) {
  ExampleStep step;
  step.norm()["before"]["x"]["shape"] = {4, 64};
  step.write(path());
  const trace::StepBytes bytes(path());
  const trace::TraceStep parsed = trace::parse_step(bytes.text(), path());
  const std::string why = why_refused([&] { trace::judge_call(parsed, 0, bytes); });
  EXPECT_NE(why.find("384 bytes where the tensor has 512"), std::string::npos) << why;
}

TEST_F(TraceTest, AFileThatCannotBeWrittenSaysWhy) {
  ExampleStep step;
  const std::string missing = (folder_ / "missing" / "step-000000.h5").string();
  EXPECT_NE(why_refused([&] { step.write(missing); }).find("No such file or directory"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(TraceTest, AFullDiskLeavesNoFile) {
  ExampleStep step;
  step.norm();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit few{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &few);
  const std::string why = why_refused([&] { step.write(path()); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_NE(why.find("cannot write " + path()), std::string::npos) << why;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace trace_test
}  // namespace plumb::tests
