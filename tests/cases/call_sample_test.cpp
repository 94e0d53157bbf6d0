// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/call_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cases/drivers/run.h"
#include "cases/studies/outside_call.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace call_sample_test {

std::int64_t rows_with_values(const HostTensor& tensor) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const auto* first = tensor.row<std::uint16_t>(row);
    count += std::any_of(first, first + tensor.columns(), [](auto bits) { return bits != 0; });
  }
  return count;
}

// Tensors of a sampled call take memory for judged rows only: other rows are never copied.
TEST(CallSample, HoldsTheJudgedRowsAndWhatAllRowsShare) {
  constexpr std::int64_t kRows = 64, kColumns = 32;
  const std::vector<std::uint16_t> x(kRows * kColumns, 0x3f80), weight(kColumns, 0x3f80);
  const auto given = [](const std::vector<std::uint16_t>& bits, std::vector<std::int64_t> shape) {
    std::vector<std::int64_t> strides(shape.size(), 2);
    if (shape.size() == 2) strides.front() = 2 * shape.back();
    return GivenTensor{Dtype::bf16, shape, strides,
                       reinterpret_cast<const std::byte*>(bits.data())};
  };
  GivenCall call;
  call.tensors["x"] = given(x, {kRows, kColumns});
  call.tensors["weight"] = given(weight, {kColumns});
  call.tensors["out"] = given(x, {kRows, kColumns});
  call.reals["eps"] = 0;
  const OutsideCall some("rms_norm", call, {}, true, {.most = 5});
  for (const char* name : {"x", "out"}) {
    EXPECT_EQ(rows_with_values(some.tensors().at(name)), 5) << name;
  }
  EXPECT_EQ(rows_with_values(some.tensors().at("weight")), 1);
  EXPECT_TRUE(some.judge().passed());
  const OutsideCall all("rms_norm", call, {}, true);
  EXPECT_EQ(rows_with_values(all.tensors().at("x")), kRows);
}

GivenTensor integers(const std::vector<std::int32_t>& values, std::vector<std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 4);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  return {Dtype::i32, shape, strides, reinterpret_cast<const std::byte*>(values.data())};
}

// Numbers of a faulty engine or of a damaged file must not make a reference read past the end of a
// tensor.
TEST(StrangeCall, LengthsBeyondTheTensorsAreRefused) {
  const std::vector<std::int32_t> rows(16), lengths{2, 2};
  GivenCall pack;
  pack.tensors["x"] = integers(rows, {2, 4});
  pack.tensors["lengths"] = integers(lengths, {2, 1});
  pack.tensors["out"] = integers(rows, {2, 2, 4});
  EXPECT_THROW(OutsideCall("pack_seq", pack, {}, true).judge(), BadRow);
  pack.tensors["x"] = integers(rows, {4, 4});
  EXPECT_TRUE(OutsideCall("pack_seq", pack, {}, true).judge().passed());

  const std::vector<std::int32_t> entries(4), zeros(4), far{0, 1000}, near{0, 4};
  GivenCall copy;
  copy.integers["rows"] = 1;
  copy.words["copied"] = "length";
  for (const char* name : {"indices", "indices_buffer_before", "indices_buffer"}) {
    copy.tensors[name] = integers(entries, {4, 1});
  }
  copy.tensors["indptr"] = integers(far, {2, 1});
  copy.tensors["indptr_buffer_before"] = integers(far, {2, 1});
  copy.tensors["indptr_buffer"] = integers(far, {2, 1});
  EXPECT_THROW(OutsideCall("copy_ragged_to_graph_buffers", copy, {}, true).judge(), BadRow);
  copy.tensors["indptr"] = copy.tensors["indptr_buffer"] = integers(near, {2, 1});
  EXPECT_TRUE(OutsideCall("copy_ragged_to_graph_buffers", copy, {}, true).judge().passed());
}

// Sets all elements of one integer tensor of a right call to `number`. True if expect() refuses the
// call instead of reading past the end of a table.
bool is_refused(const char* id, const char* tensor, std::int64_t number) {
  const Case& which = find_case(id);
  const std::unique_ptr<Problem> problem =
      which.op->make_problem(which.row, device::open_device("sim-sm90")->properties());
  const Step step{1, problem->capacity(), Fill::real, DeadRows::zero};
  TensorSet tensors = problem->make_tensors();
  problem->fill(step, tensors);
  HostTensor& changed = tensors.at(tensor);
  for (std::int64_t i = 0; i < changed.elements(); ++i) {
    if (changed.spec().dtype == Dtype::i64) changed.data<std::int64_t>()[i] = number;
    if (changed.spec().dtype == Dtype::i32) {
      changed.data<std::int32_t>()[i] = static_cast<std::int32_t>(number);
    }
  }
  try {
    const plumb_numerics numerics = numerics_with({});
    problem->expect(step, tensors, to_reference(numerics), numerics);
    return false;
  } catch (const BadRow&) {
    return true;
  }
}

TEST(StrangeCall, PlacesOutsideOfTheTablesAreRefused) {
  const char* const compress = "compress_norm_rope_insert/c4_indexer/eager";
  EXPECT_FALSE(is_refused(compress, "positions", -5)) << "closes no group";
  EXPECT_TRUE(is_refused(compress, "positions", 4'000'000'000'003));
  EXPECT_TRUE(is_refused(compress, "token_to_req", 70'000));
  EXPECT_TRUE(is_refused("save_partial_states/c4_main/eager", "positions", -1));
  EXPECT_TRUE(is_refused("indexer_q_rope_quant/v4/eager", "positions", -1));
}

}  // namespace call_sample_test
}  // namespace plumb::cases
