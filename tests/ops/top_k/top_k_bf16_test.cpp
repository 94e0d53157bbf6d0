// SPDX-License-Identifier: Apache-2.0
//
// Tests top-k per row on bf16 logits: the reference against results computed by hand, fills, the
// selection in one block for every start and stride of a row, the kernels, and what their launchers
// refuse.
#include <gtest/gtest.h>
#include <plumb/ops/top_k.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#define PLUMB_KERNEL_SET top_k_bf16_test_kernels
#include "cases/ops/top_k/top_k_fill.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "device/kernels/top_k/top_k_select.h"
#include "device/sim/launch.h"
#include "reference/formats/bfloat16.h"
#include "reference/top_k/top_k_per_row_decode.h"
#include "reference/top_k/top_k_per_row_prefill.h"

namespace plumb::device::kernels {
device::OpEntry top_k_per_row_prefill();
device::OpEntry top_k_per_row_decode();
}  // namespace plumb::device::kernels

namespace plumb::device::top_k_bf16_test_kernels {

PLUMB_KERNEL void select_one(TopKWindow<std::uint16_t> window, std::int32_t k,
                             std::int32_t* indices, TopKRoom room) {
  PLUMB_SHARED(TopKShared, shared, 1);
  select_top_k<false>(window, k, indices, room, shared);
}

// Launches one block of 32 threads with room for the flags of all tiles.
plumb_status launch_select_one(const TopKWindow<std::uint16_t>& window, std::int32_t k,
                               int candidates, std::int32_t* indices, plumb_stream stream) {
  constexpr int kBlock = 32;
  const std::int64_t tile = std::int64_t{kBlock} * kTopKColumns;
  const TopKRoom room = {static_cast<int>((window.length + kTopKChunk + tile - 1) / tile),
                         candidates};
  const LaunchShape shape{1, 1, kBlock, top_k_room_bytes(kBlock, room)};
  return PLUMB_LAUNCH(select_one, shape, stream, window, k, indices, room);
}

}  // namespace plumb::device::top_k_bf16_test_kernels

namespace plumb::cases {
namespace top_k_bf16_test {

using Bits = std::vector<std::uint16_t>;
using Indices = std::vector<std::int32_t>;
using reference::LogitWindow;

constexpr std::uint16_t kMinusInfinity = 0xff80, kMinusOne = 0xbf80, kMinusZero = 0x8000;
constexpr std::uint16_t kZero = 0, kLeast = 1, kOne = 0x3f80, kInfinity = 0x7f80, kNan = 0x7fc0;
constexpr std::uint16_t kMinusNan = 0xffc0;

LogitWindow window_of(const Bits& logits, std::int64_t column_stride = 1) {
  LogitWindow window{logits.data(), column_stride, std::ssize(logits) / column_stride};
  window.bf16 = true;
  return window;
}

Indices select(const LogitWindow& window, std::int32_t k) {
  Indices indices(static_cast<std::size_t>(k));
  reference::select_top_k(window, k, indices.data());
  return indices;
}

std::size_t wrong_places(const LogitWindow& window, const Indices& indices) {
  const auto k = static_cast<std::int32_t>(indices.size());
  return reference::check_selection(window, k, indices.data()).size();
}

// 0x7f81 and 0xff81 are signalling NaN. A conversion to another format would make them quiet, and
// their bits would equal those of the NaN next to them.
TEST(TopKOfBf16, KeysAscendFromMinusNanToNan) {
  const Bits ascending = {kMinusNan | 1, kMinusNan,  0xff81, kMinusInfinity, 0xff7f,  kMinusOne,
                          0x8001,        kMinusZero, kZero,  kLeast,         kOne,    0x3f81,
                          0x7f7f,        kInfinity,  0x7f81, kNan,           kNan | 1};
  const LogitWindow window = window_of(ascending);
  for (std::int64_t i = 1; i < window.length; ++i) {
    EXPECT_LT(window.key(i - 1), window.key(i)) << i;
  }
}

TEST(TopKOfBf16, LogitsHaveTwoBytesEach) {
  const Bits logits = {kOne, kNan, kZero, kNan, 0x3f81, kNan, kMinusOne, kNan};
  EXPECT_EQ(select(window_of(logits, 2), 2), (Indices{2, 0}));
  const std::int32_t starts[] = {1, 2}, ends[] = {4, 4};
  reference::TopKPerRowPrefill prefill{logits.data(), starts, ends, 2, 4, 4, 1, 2};
  prefill.bf16 = true;
  EXPECT_EQ(reference::top_k_per_row_prefill(prefill), (Indices{0, 2, 0, 1}));
  const std::int32_t lengths[] = {3, 4};
  reference::TopKPerRowDecode decode{logits.data(), lengths, 2, 4, 4, 1, 1, 1, 1, 2};
  decode.bf16 = true;
  EXPECT_EQ(reference::top_k_per_row_decode(decode), (Indices{1, 0, 1, 3}));
}

// 1.0 and 1.001 in fp32 are one number in bf16. The next number is 1.0078125.
TEST(TopKOfBf16, OnlyNumbersOfOneBitPatternAreTied) {
  Bits logits;
  for (const float value : {1.0F, 0.5F, 1.001F, 1.0078125F}) {
    logits.push_back(reference::encode_bf16(value));
  }
  const LogitWindow window = window_of(logits);
  EXPECT_EQ(wrong_places(window, {3, 0}), 0u);
  EXPECT_EQ(wrong_places(window, {3, 2}), 0u);
  EXPECT_EQ(wrong_places(window, {2, 0}), 1u);
  EXPECT_EQ(wrong_places(window, {3, 1}), 1u);
}

TEST(TopKOfBf16, ZerosAndNanFollowTheContract) {
  LogitWindow zeros = window_of({});
  const Bits both = {kMinusZero, kZero, kMinusOne};
  zeros = window_of(both);
  EXPECT_EQ(wrong_places(zeros, {0}), 1u);
  zeros.zeros_are_equal = true;
  EXPECT_EQ(wrong_places(zeros, {0}), 0u);
  const Bits nan = {kMinusNan, kInfinity, kNan};
  LogitWindow window = window_of(nan);
  EXPECT_EQ(wrong_places(window, {1, 2}), 0u);
  EXPECT_EQ(wrong_places(window, {0, 2}), 1u);
  window.nan_order = reference::NanOrder::all_top;
  EXPECT_EQ(wrong_places(window, {0, 2}), 0u);
  window.nan_order = reference::NanOrder::unspecified;
  EXPECT_TRUE(is_free(window, 1));
}

// A row of logits with one column in front of its window and one behind it.
HostTensor filled(std::int64_t length, Fill fill, std::optional<LogitPattern> pattern = {}) {
  TensorSpec spec;
  spec.name = "logits";
  spec.dtype = Dtype::bf16;
  spec.shape = {1, length + 2};
  spec.strides = {length + 2, 1};
  HostTensor logits(spec);
  fill_logits(logits, 0, 1, length + 1, {.seed = 3, .fill = fill, .pattern = pattern, .k = 100});
  return logits;
}

std::set<std::uint16_t> different(const HostTensor& logits) {
  const auto* first = logits.data<std::uint16_t>() + 1;
  return {first, first + logits.columns() - 2};
}

TEST(TopKOfBf16, ExactFillsHaveDifferentFiniteLogits) {
  for (const std::int64_t length : {1, 2, 7, 700, 33000, 40001, 65000}) {
    const HostTensor logits = filled(length, Fill::exact);
    EXPECT_EQ(std::ssize(different(logits)), length);
    for (const std::uint16_t bits : different(logits)) {
      ASSERT_TRUE(std::isfinite(reference::decode_bf16(bits))) << length;
    }
  }
  const std::set<std::uint16_t> many = different(filled(100000, Fill::exact));
  EXPECT_GT(many.size(), 40000u);
  for (const std::uint16_t bits : many) {
    ASSERT_TRUE(std::isfinite(reference::decode_bf16(bits)));
  }
}

TEST(TopKOfBf16, FillsReachTheLastBit) {
  EXPECT_EQ(different(filled(9000, Fill::real, LogitPattern::low_bits)).size(), 128u);
  const std::set<std::uint16_t> near = different(filled(9000, Fill::real, LogitPattern::near_ties));
  EXPECT_EQ(near.size(), 200u);
  EXPECT_EQ(*near.rbegin() - *near.begin(), 199);
  const HostTensor logits = filled(700, Fill::real);
  for (const std::int64_t outside : {std::int64_t{0}, logits.columns() - 1}) {
    EXPECT_FALSE(std::isfinite(reference::decode_bf16(logits.data<std::uint16_t>()[outside])));
  }
}

// Selects by one block from logits that stand `stride` apart, from element `lead` on. The elements
// between them are NaN.
Indices select_on_device(const Bits& logits, std::int32_t k, std::size_t lead, std::size_t stride,
                         int candidates) {
  const auto device = device::open_device("sim-gfx942", {});
  const device::Stream stream = device->create_stream();
  Bits row(lead + logits.size() * stride, kNan);
  for (std::size_t i = 0; i < logits.size(); ++i) row[lead + i * stride] = logits[i];
  const std::size_t bytes = row.size() * sizeof(row[0]);
  auto* const in = static_cast<std::uint16_t*>(device->allocate(bytes, "logits"));
  Indices indices(static_cast<std::size_t>(k));
  const std::size_t out_bytes = indices.size() * sizeof(indices[0]);
  auto* const out = static_cast<std::int32_t*>(device->allocate(out_bytes, "indices"));
  device->copy(in, row.data(), bytes, stream);
  const device::top_k_bf16_test_kernels::TopKWindow<std::uint16_t> window{
      in + lead, static_cast<std::int64_t>(stride), std::ssize(logits)};
  EXPECT_EQ(device::top_k_bf16_test_kernels::launch_select_one(window, k, candidates, out, stream),
            PLUMB_OK);
  device->copy(indices.data(), out, out_bytes, stream);
  EXPECT_TRUE(device->check_guards().empty());
  return indices;
}

// Rows of one tile and of several, with and without a list of candidates.
TEST(TopKOfBf16, EveryStartAndStrideGivesTheSameIndices) {
  for (const std::int64_t length : {1000, 5000}) {
    Bits logits;
    for (std::int64_t i = 0; i < length; ++i) {
      logits.push_back(static_cast<std::uint16_t>(random_bits(5, static_cast<std::uint64_t>(i))));
    }
    Indices expected = select(window_of(logits), 300);
    std::sort(expected.begin(), expected.end());
    for (std::size_t lead = 0; lead < 8; ++lead) {
      for (const std::size_t stride : {1, 2}) {
        for (const int candidates : {0, 2000}) {
          EXPECT_EQ(select_on_device(logits, 300, lead, stride, candidates), expected)
              << length << " lead " << lead << " stride " << stride << " list of " << candidates;
        }
      }
    }
  }
}

TEST(TopKOfBf16, UnknownFormatsAreRefused) {
  plumb_top_k_per_row_prefill_params prefill{};
  prefill.k = prefill.indices_row_stride = 1;
  plumb_top_k_per_row_decode_params decode{};
  decode.k = decode.indices_row_stride = decode.next_n = decode.seq_lens_dims = 1;
  for (const auto& [format, status] : {std::pair{int{PLUMB_LOGITS_BF16}, PLUMB_OK},
                                       {2, PLUMB_INVALID_ARGUMENT},
                                       {int{PLUMB_BF16}, PLUMB_INVALID_ARGUMENT},
                                       {-1, PLUMB_INVALID_ARGUMENT}}) {
    std::memcpy(&prefill.logits_format, &format, sizeof format);
    decode.logits_format = prefill.logits_format;
    EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&prefill), status) << format;
    EXPECT_EQ(device::kernels::top_k_per_row_decode().launch(&decode), status) << format;
  }
}

}  // namespace top_k_bf16_test
}  // namespace plumb::cases
