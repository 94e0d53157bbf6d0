// SPDX-License-Identifier: Apache-2.0
//
// Tests files of recorded calls that are used as rows of an op's cases: for every op the recorded
// bytes reach the kernel, a wrong kernel fails on them, and a hostile file is refused in one line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "cases/drivers/run.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tables/case_file.h"
#include "cases/tensors/fill.h"
#include "tests/support/rows_and_cases.h"
#include "tests/trace/recorded_call.h"

namespace plumb::tests {
namespace recorded_row_test {

using cases::BadRow;
using cases::Case;
using cases::HostTensor;
using cases::Role;
using cases::TensorSet;

// The eager case of a recorded file.
Case eager_case(const std::string& bytes) {
  const cases::CaseFile file = cases::take_recorded(bytes, "call.row");
  const cases::OpDefinition& op = cases::find_op(cases::op_of_case_file(file.text, file.name));
  return {&op, cases::rows_of(op, file, {file}).at(0), &cases::all_scenarios().front()};
}

TensorSet filled(const Case& which, std::uint64_t seed) {
  const auto problem =
      which.op->make_problem(which.row, device::open_device("sim-sm90")->properties());
  TensorSet tensors = problem->make_tensors();
  problem->fill({seed, problem->capacity(), cases::Fill::real, cases::DeadRows::nan}, tensors);
  return tensors;
}

std::uint64_t first_seed(const Case& which) { return cases::mix(cases::seed_of(which.id()), 100); }

cases::RunOptions smoke() {
  cases::RunOptions options;
  options.platform = "sim-sm90";
  options.tier = cases::Tier::smoke;
  return options;
}

plumb_status does_nothing(const void*) { return PLUMB_OK; }

// Compares rows of the last dimension. The recorded tensor may have more rows than the case's.
void expect_same_values(const HostTensor& case_tensor, const HostTensor& recorded) {
  const std::size_t size = size_of(case_tensor.spec().dtype);
  const std::int64_t rows_of_place =
      case_tensor.rows() / std::max<std::int64_t>(case_tensor.spec().shape.front(), 1);
  for (std::int64_t row = 0; row < case_tensor.rows(); ++row) {
    std::int64_t there = row;
    if (case_tensor.spec().sparse) {
      const auto place = static_cast<std::size_t>(row / rows_of_place);
      there = case_tensor.spec().placement[place] * rows_of_place + row % rows_of_place;
    }
    const auto at = [&](const HostTensor& tensor, std::int64_t r) {
      return tensor.bytes().data() + static_cast<std::size_t>(tensor.row_offset(r)) * size;
    };
    const std::size_t bytes = static_cast<std::size_t>(case_tensor.columns()) * size;
    ASSERT_EQ(std::memcmp(at(case_tensor, row), at(recorded, there), bytes), 0)
        << case_tensor.spec().name << " row " << row;
  }
}

TEST(RecordedRow, OfEveryOpHasTheRecordedBytesAndRuns) {
  std::set<std::string_view> seen;
  for (const Case& source : smoke_cases()) {
    if (!seen.insert(source.op->name).second) continue;
    SCOPED_TRACE(source.id());
    const RecordedInputs inputs(source);
    try {
      const Case which = eager_case(cases::encode_recorded(inputs.file));
      const TensorSet tensors = filled(which, first_seed(which));
      for (const HostTensor& tensor : inputs.tensors.all()) {
        if (tensor.spec().role != Role::input) continue;
        expect_same_values(tensor, tensors.at(tensor.spec().name));
      }
      const cases::CaseResult right = run_case(which, smoke());
      EXPECT_EQ(name_of(right.outcome), "passed")
          << right.reason
          << (right.failures.empty() ? "" : testing::PrintToString(right.failures[0].lines));
    } catch (const BadRow& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_EQ(seen.size(), cases::all_ops().size());
}

TEST(RecordedRow, OfEveryOpFailsWithAKernelThatWritesNothing) {
  std::set<std::string_view> seen, failed;
  for (const Case& source : smoke_cases()) {
    if (!seen.insert(source.op->name).second) continue;
    SCOPED_TRACE(source.id());
    const RecordedInputs inputs(source);
    const Case which = eager_case(cases::encode_recorded(inputs.file));
    device::Implementation idle = device::builtin_implementation("sim-sm90");
    for (device::OpEntry& entry : idle.entries) {
      entry.launch = does_nothing;
      entry.plan = nullptr;
    }
    cases::RunOptions options = smoke();
    options.implementation = [&](std::string_view, bool) -> const device::Implementation& {
      return idle;
    };
    if (run_case(which, options).outcome == cases::Outcome::failed) failed.insert(source.op->name);
  }
  EXPECT_EQ(failed, seen);
}

// ---- later steps: the same rows in another order ----

TEST(RecordedRow, HasItsRowsInAnotherOrderInLaterSteps) {
  const RecordedInputs inputs(cases::find_case("rms_norm/v4_pro_hidden/eager"));
  const Case which = eager_case(cases::encode_recorded(inputs.file));
  const TensorSet first = filled(which, first_seed(which)), later = filled(which, 5);
  const HostTensor &x = first.at("x"), &moved = later.at("x");
  EXPECT_EQ(first.at("weight").bytes(), later.at("weight").bytes());
  EXPECT_NE(x.bytes(), moved.bytes());
  std::multiset<std::string> rows, moved_rows;
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const auto text = [&](const HostTensor& tensor) {
      return std::string(reinterpret_cast<const char*>(tensor.row<std::uint16_t>(row)),
                         static_cast<std::size_t>(2 * tensor.columns()));
    };
    rows.insert(text(x));
    moved_rows.insert(text(moved));
  }
  EXPECT_EQ(rows, moved_rows);
}

TEST(RecordedRow, KeepsTheBytesOfChosenRows) {
  const RecordedInputs inputs(cases::find_case("rms_norm/hidden_769/eager"));
  Case which = eager_case(cases::encode_recorded(inputs.file));
  const HostTensor& x = inputs.tensors.at("x");
  const auto row_bytes = [](const HostTensor& tensor, std::int64_t row) {
    return std::string(reinterpret_cast<const char*>(tensor.row<std::uint16_t>(row)),
                       static_cast<std::size_t>(2 * tensor.columns()));
  };
  cases::set_parameter(*which.op, which.row, "keep_rows", "1,4-5");
  const TensorSet few = filled(which, first_seed(which));
  ASSERT_EQ(few.at("x").rows(), 3);
  EXPECT_EQ(row_bytes(few.at("x"), 0), row_bytes(x, 1));
  EXPECT_EQ(row_bytes(few.at("x"), 1), row_bytes(x, 4));
  EXPECT_EQ(row_bytes(few.at("x"), 2), row_bytes(x, 5));
  EXPECT_EQ(few.at("weight").bytes(), inputs.tensors.at("weight").bytes());
  cases::set_parameter(*which.op, which.row, "tokens", "5");
  EXPECT_EQ(filled(which, first_seed(which)).at("x").rows(), 2) << "rows 1 and 4 of the first 5";
}

// For every op with independent rows: the kernel is also right on a recorded call of which only one
// row is kept.
TEST(RecordedRow, OfEveryOpWithRowsRunsWithFewerOfThem) {
  std::set<std::string_view> seen, smaller;
  for (const Case& source : smoke_cases()) {
    if (source.op->row_count.empty() || source.row.integer(source.op->row_count) < 2) continue;
    if (!seen.insert(source.op->name).second) continue;
    SCOPED_TRACE(source.id());
    const RecordedInputs inputs(source);
    if (inputs.has_table()) continue;
    Case which = eager_case(cases::encode_recorded(inputs.file));
    cases::set_parameter(*which.op, which.row, "keep_rows", "1");
    try {
      const cases::CaseResult result = run_case(which, smoke());
      EXPECT_EQ(name_of(result.outcome), "passed") << result.reason;
      smaller.insert(source.op->name);
    } catch (const BadRow& error) {
      EXPECT_NE(std::string(error.what()).find("cannot be left out"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_GT(smaller.size(), 10u);
}

TEST(RecordedRow, RunsInEveryScenarioWithAllRowsLive) {
  const RecordedInputs inputs(cases::find_case("rms_norm/v4_pro_hidden/eager"));
  const std::string bytes = cases::encode_recorded(inputs.file);
  const cases::CaseFile file = cases::take_recorded(bytes, "call.row");
  std::set<std::string> scenarios;
  for (const Case& which : cases::all_cases({file})) {
    if (!cases::is_recorded(which.row)) continue;
    scenarios.insert(which.scenario->name);
    const cases::CaseResult result = run_case(which, smoke());
    EXPECT_EQ(name_of(result.outcome), "passed") << which.id();
  }
  EXPECT_TRUE(scenarios.contains("eager") && scenarios.contains("full_graph"));
  EXPECT_TRUE(scenarios.contains("concurrent"));
}

// ---- foreign files ----

std::string small_file() {
  return cases::encode_recorded(RecordedInputs(cases::find_case("rms_norm/hidden_769/eager")).file);
}

// The error of a file; "" if it is accepted and its problem can be made and filled.
std::string refusal(const std::string& bytes) {
  try {
    filled(eager_case(bytes), 1);
  } catch (const BadRow& error) {
    return error.what();
  }
  return "";
}

void expect_line(const std::string& why) {
  EXPECT_FALSE(why.empty());
  EXPECT_EQ(why.find_first_of("\n\r"), std::string::npos) << why;
}

TEST(RecordedFile, ComesBack) {
  const RecordedInputs inputs(cases::find_case("rms_norm/hidden_769/eager"));
  const std::string bytes = cases::encode_recorded(inputs.file);
  EXPECT_EQ(with_own_digest(bytes), bytes) << "the digest is that of traces";
  const cases::DecodedRecording decoded = cases::decode_recorded(bytes, "call.row");
  ASSERT_EQ(decoded.call.tensors.size(), inputs.file.tensors.size());
  for (std::size_t i = 0; i < inputs.file.tensors.size(); ++i) {
    const cases::RecordedTensor &in = inputs.file.tensors[i], &out = decoded.call.tensors[i];
    EXPECT_EQ(in.name, out.name);
    EXPECT_EQ(in.shape, out.shape);
    EXPECT_TRUE(std::ranges::equal(in.bytes, out.bytes));
  }
  EXPECT_EQ(cases::encode_recorded(inputs.file), bytes) << "no time of day, no path";
}

TEST(RecordedFile, OfAnotherVersionIsRefusedWithBothNumbers) {
  std::string bytes = small_file();
  bytes.replace(bytes.find(" 1 "), 3, " 20 ");
  EXPECT_EQ(refusal(bytes), "call.row: version 20 of recorded rows; this plumb reads 1");
}

TEST(RecordedFile, CutOrChangedIsRefused) {
  const std::string whole = small_file();
  EXPECT_EQ(refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); size += size < 2000 ? 1 : 97) {
    EXPECT_FALSE(cases::is_recorded_file(whole.substr(0, size)) &&
                 refusal(whole.substr(0, size)).empty())
        << size;
  }
  EXPECT_NE(refusal(whole + "x"), "");
  for (std::size_t at = 0; at < whole.size(); at += at < 2000 ? 1 : 97) {
    std::string changed = whole;
    changed[at] ^= 1;
    const std::string why = refusal(changed);
    expect_line(why);
  }
}

struct Edit {
  std::string from, to, says;
};

TEST(RecordedFile, WithAHostileHeadIsRefusedInOneLine) {
  const std::string whole = small_file();
  const std::vector<Edit> edits{
      {R"("op":"rms_norm")", R"("op":"rms_morn")", R"(did you mean "rms_norm")"},
      {R"("op":"rms_norm")", R"("op":"rms\nno")", R"("op" is not plain text)"},
      {R"("op":"rms_norm")", R"("op":"a\"]\nb")", R"("op" is not plain text)"},
      {R"("op":"rms_norm")", R"("op":7)", R"(no text "op")"},
      {R"("fill":"recorded")", R"("fill":"seeded")", "its fill is not"},
      {R"("dtype":"bf16")", R"("dtype":"bf17")", R"("bf17" is not a dtype)"},
      {R"("dtype":"bf16")", R"("dtype":"i64")", "bytes are not there"},
      {R"("name":"x")", R"("name":"y")", "there is no y"},
      {R"("name":"x")", R"("name":"weight")", "weight is there twice"},
      {R"("tensors":)", R"("tens":)", "no list of tensors"},
      {R"("tensors":[)", R"("tensors":[3,)", "a tensor is not an object"},
      {R"("row":)", R"("rov":)", R"(no object "row")"},
      {R"([6,)", R"([-6,)", "not whole numbers from 0"},
      {R"([6,)", R"([6.0,)", "not whole numbers from 0"},
      {R"([6,)", R"([0,4611686018427387904,4611686018427387904,)", "more than 1024 MiB"},
      {R"([6,)", R"([9223372036854775807,)", "more than 1024 MiB"},
      {R"([6,)", R"([18446744073709551615,)", "not whole numbers from 0"},
      {R"([6,)", R"([1,1,1,1,1,1,1,1,6,)", "not a list of at most 8 numbers"},
      {R"("shape":[6)", R"("blocks":[3,1],"shape":[6)", "not ascending blocks"},
      {R"("shape":[6)", R"("blocks":[6],"shape":[6)", "not ascending blocks"},
      {R"("shape":[6)", R"("blocks":[-1],"shape":[6)", "not whole numbers from 0"},
      {R"("tokens":6)", R"("tokens":7)", "tokens"},
      {R"("tokens":6)", R"("tokens":4611686018427387904)", "tokens"},
      {R"("tokens":6)", R"("tokens":null)", "neither a whole number nor plain text"},
      {R"("tokens":6)", R"("tokens":6.5)", "neither a whole number nor plain text"},
      {R"("eps":)", R"("eps":1e300,"x":)", "eps is not an fp32 number"},
      {R"("eps":)", R"("eps":"1","x":)", "eps is not an fp32 number"},
      {R"("reals":{)", R"("reals":{"epsilon":1,)", R"(no parameter "epsilon")"},
      {R"("tokens":6)", R"("tokens":6,"known_bug":"none")", "a recorded row has no known_bug"},
      {R"("tokens":6)", R"("tokens":6,"a\nb":3)", "a-z, 0-9 and _"},
      {R"("tokens":6)", R"("tokens":6,"rounding":"a\"\nname = \"b")", "nor plain text"},
      {R"("tokens":6)", R"("tokens":6,"nothing":3)", R"(no parameter "nothing")"},
      {R"("tokens":6)", R"("tokens":)", "its head is not JSON"},
  };
  for (const Edit& edit : edits) {
    SCOPED_TRACE(edit.from + " -> " + edit.to);
    const std::size_t head = whole.find('\n', whole.find('\n') + 1) + 1;
    std::string edited = whole;
    const std::size_t at = edited.find(edit.from);
    ASSERT_NE(at, std::string::npos) << whole.substr(0, 700);
    edited.replace(at, edit.from.size(), edit.to);
    const std::size_t line = whole.find('\n') + 1;
    const std::size_t size = std::stoul(whole.substr(line));
    edited.replace(line, head - 1 - line, std::to_string(size + edit.to.size() - edit.from.size()));
    const std::string why = refusal(with_own_digest(edited));
    expect_line(why);
    EXPECT_NE(why.find(edit.says), std::string::npos) << why;
    EXPECT_EQ(why.find("call.row"), 0u) << why;
  }
}

// Random edits of any op's file with a right digest: each file is accepted, or refused in one line.
TEST(RecordedFile, RandomEditsAreTakenOrRefused) {
  std::mt19937_64 random(11);
  std::map<std::string_view, std::string> files;
  for (const Case& source : smoke_cases()) {
    const RecordedInputs inputs(source);
    std::string bytes = cases::encode_recorded(inputs.file);
    if (bytes.size() < (1 << 17)) files.try_emplace(source.op->name, std::move(bytes));
  }
  EXPECT_GT(files.size(), 30u);
  for (const auto& [op, whole] : files) {
    SCOPED_TRACE(op);
    const std::size_t begin = whole.find('\n') + 1;
    const std::size_t head = whole.find('\n', begin) + std::stoul(whole.substr(begin));
    for (int i = 0; i < 40; ++i) {
      std::string edited = whole;
      for (int change = 0; change < 1 + i % 4; ++change) {
        edited[begin + random() % (head - begin)] =
            static_cast<char>(i % 3 == 0   ? '0' + random() % 10
                              : i % 3 == 1 ? ' ' + random() % 95
                                           : random());
      }
      const std::string why = refusal(with_own_digest(edited));
      EXPECT_EQ(why.find_first_of("\n\r"), std::string::npos) << why;
    }
  }
}

}  // namespace recorded_row_test
}  // namespace plumb::tests
