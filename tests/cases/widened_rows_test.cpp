// SPDX-License-Identifier: Apache-2.0
//
// A row of any op may widen its strides, move its rows apart and set floats of its struct. Kernels
// that assume the usual values fail in such rows, and only there.
#include <gtest/gtest.h>
#include <plumb/ops/norm.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/tables/case_file.h"
#include "faults/replaced_op.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace widened_rows_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

// Outcome of a case whose launcher changes the parameters before it launches.
template <class Params>
Outcome outcome_with(const std::string& name, void (*change)(Params&), const Settings& settings) {
  static device::OpEntry own;
  static void (*changed)(Params&);
  Case which = find_case(name);
  own = *device::find_entry(device::builtin_implementation("sim-sm90"), which.op->name);
  changed = change;
  device::OpEntry entry = own;
  entry.launch = [](const void* given) {
    Params params = *static_cast<const Params*>(given);
    changed(params);
    return own.launch(&params);
  };
  RunOptions options = on("sim-sm90");
  options.implementation = with_op_replaced({entry, {}});
  for (const auto& [key, value] : settings) set_parameter(*which.op, which.row, key, value);
  return run_case(which, options).outcome;
}
template <void (*change)(plumb_rms_norm_params&)>
Outcome outcome_with(const Settings& settings) {
  return outcome_with("rms_norm/v4_pro_hidden/eager", change, settings);
}

void nothing(plumb_rms_norm_params&) {}
void usual_eps(plumb_rms_norm_params& p) { p.eps = 1e-6F; }
void dense_input(plumb_rms_norm_params& p) { p.x_row_stride = p.hidden; }
void dense_output(plumb_rms_norm_params& p) { p.out_row_stride = p.hidden; }
void stride_in_32_bits(plumb_rms_norm_params& p) {
  p.x_row_stride = static_cast<std::uint32_t>(p.x_row_stride);
}

TEST(WidenedRows, TellAKernelThatIgnoresEps) {
  EXPECT_EQ(outcome_with<usual_eps>({}), Outcome::passed);
  EXPECT_EQ(outcome_with<usual_eps>({{"eps", "0.3"}}), Outcome::failed);
  EXPECT_EQ(outcome_with<nothing>({{"eps", "0.3"}}), Outcome::passed);
}

TEST(WidenedRows, TellAKernelThatIgnoresAStride) {
  EXPECT_EQ(outcome_with<dense_input>({}), Outcome::passed);
  EXPECT_EQ(outcome_with<dense_input>({{"gap_x_row_stride", "3"}}), Outcome::failed);
  EXPECT_EQ(outcome_with<dense_output>({{"gap_x_row_stride", "3"}}), Outcome::passed);
  EXPECT_EQ(outcome_with<dense_output>({{"align_out_row_stride", "1024"}, {"hidden", "1000"}}),
            Outcome::failed);
  EXPECT_EQ(outcome_with<nothing>({{"gap_x_row_stride", "3"}, {"gap_out_row_stride", "8"}}),
            Outcome::passed);
}

TEST(WidenedRows, TellAKernelThatKeepsAddressesIn32Bits) {
  EXPECT_EQ(outcome_with<stride_in_32_bits>({{"gap_x_row_stride", "3"}}), Outcome::passed);
  EXPECT_EQ(outcome_with<stride_in_32_bits>({{"tokens", "2"}, {"far_x_row_stride", "32"}}),
            Outcome::failed);
  EXPECT_EQ(outcome_with<nothing>({{"far_x_row_stride", "32"}, {"far_out_row_stride", "31"}}),
            Outcome::passed);
}

TEST(WidenedRows, TellAKernelThatKeepsAnInnerOffsetIn32Bits) {
  const auto unchanged = +[](plumb_inverse_rope_params&) {};
  const auto in_32_bits = +[](plumb_inverse_rope_params& p) {
    p.out_head_stride = static_cast<std::uint32_t>(p.out_head_stride);
  };
  const std::string name = "inverse_rope/v4_pro_tp8_copy/eager";
  const Settings near{{"tokens", "2"}, {"heads", "3"}, {"gap_out_head_stride", "8"}};
  Settings far = near;
  far.emplace_back("far_out_head_stride", "32");
  EXPECT_EQ(outcome_with(name, in_32_bits, near), Outcome::passed);
  EXPECT_EQ(outcome_with(name, in_32_bits, far), Outcome::failed);
  EXPECT_EQ(outcome_with(name, unchanged, far), Outcome::passed);
}

TEST(WidenedRows, RefuseAFarStrideThatHasNoPlaces) {
  Case which = find_case("inverse_rope/v4_pro_tp8_copy/eager");
  for (const auto& [key, value] : Settings{{"tokens", "2"},
                                           {"heads", "3"},
                                           {"gap_out_token_stride", "5"},
                                           {"far_out_head_stride", "32"}}) {
    set_parameter(*which.op, which.row, key, value);
  }
  EXPECT_THROW(run_case(which, on("sim-sm90")), BadRow);
}

// A kernel may refuse such calls. That would be blamed on it.
TEST(RefusedRows, AreNoLegalCalls) {
  const auto with = [](const char* id, const char* name, const char* value) {
    Case which = find_case(id);
    set_parameter(*which.op, which.row, name, value);
    return run_case(which, on("sim-sm90")).outcome;
  };
  const char* const compress = "compress_norm_rope_insert/c4_main/eager";
  EXPECT_THROW(with(compress, "page_gap", "1"), BadRow);
  EXPECT_EQ(with(compress, "page_gap", "2"), Outcome::passed);
  const char* const expand = "expand_candidate_blocks/v41_decode/eager";
  EXPECT_THROW(with(expand, "sparse_block_size", "3"), BadRow);
  EXPECT_EQ(with(expand, "sparse_block_size", "4"), Outcome::passed);
  try {
    with(expand, "sparse_block_size", "3");
  } catch (const BadRow& error) {
    EXPECT_NE(std::string(error.what()).find(": sparse_blocks_row_stride: "), std::string::npos)
        << error.what();
  }
}

}  // namespace widened_rows_test
}  // namespace plumb::cases
