// SPDX-License-Identifier: Apache-2.0
//
// A row of any op may widen its strides, move its rows apart and set the numbers of its struct.
// Kernels that take these for what they usually are fail there, and only there.
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
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// rms_norm whose launcher changes the parameters first.
template <void (*change)(plumb_rms_norm_params&)>
Outcome outcome_with(const Settings& settings) {
  static const device::OpEntry own =
      *device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm");
  device::OpEntry entry = own;
  entry.launch = [](const void* given) {
    auto params = *static_cast<const plumb_rms_norm_params*>(given);
    change(params);
    return own.launch(&params);
  };
  RunOptions options = on("sim-sm90");
  options.implementation = with_op_replaced({entry, {}});
  Case which = find_case("rms_norm/v4_pro_hidden/eager");
  for (const auto& [name, value] : settings) set_parameter(*which.op, which.row, name, value);
  return run_case(which, options).outcome;
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

}  // namespace
}  // namespace plumb::cases
