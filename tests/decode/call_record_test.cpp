// SPDX-License-Identifier: Apache-2.0
//
// Records of calls whose tensors differ from the row's: padded rows, and tables of more requests.
#include "decode/recording/call_record.h"

#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>
#include <plumb/ops/metadata.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace plumb::cases {
namespace call_record_test {

using device::decode::Geometry;

Geometry small_geometry() {
  Geometry geometry;
  geometry.max_requests = 3;
  geometry.max_context = 400;
  return geometry;
}

template <class P>
CallRecord recorded(std::string_view op, P params) {
  const auto record = record_of({op, "layer 0", &params}, small_geometry());
  return record.value();
}

const Binding& binding(const CallRecord& record, std::string_view name) {
  return *std::find_if(record.bindings.begin(), record.bindings.end(),
                       [&](const Binding& b) { return b.tensor == name; });
}

constexpr std::int64_t kLogitsStride = 100, kTableStride = 9;

plumb_fp8_paged_mqa_logits_params paged_call(void* place) {
  auto* bytes = static_cast<std::uint8_t*>(place);
  auto* floats = static_cast<float*>(place);
  auto* words = static_cast<std::int32_t*>(place);
  return {.q = bytes,
          .cache = {.data = bytes,
                    .block_stride_bytes = std::int64_t{64} * (128 + 4),
                    .num_blocks = 7,
                    .page = 64,
                    .dialect = PLUMB_E4M3FN},
          .weights = floats,
          .context_lens = words,
          .block_table = words,
          .logits = floats,
          .requests = 2,
          .max_context_len = 100,
          .logits_row_stride = kLogitsStride,
          .context_lens_row_stride = 2,
          .block_table_row_stride = kTableStride,
          .context_lens_dims = 2,
          .next_n = 2,
          .heads = 4,
          .dim = 128,
          .shuffled = 0,
          .clean_logits = 0,
          .q_dialect = PLUMB_E4M3FNUZ,
          .stream = nullptr};
}

TEST(CallRecord, HasThePitchOfRowsThatTheCallerPads) {
  std::int64_t place = 0;
  const CallRecord record = recorded("fp8_paged_mqa_logits", paged_call(&place));
  EXPECT_EQ(record.row.integer("length"), 100);
  EXPECT_EQ(record.row.integer("blocks"), 7);
  EXPECT_EQ(record.row.word("q_dialect"), "e4m3fnuz");
  const Binding &logits = binding(record, "logits"), &table = binding(record, "block_table");
  EXPECT_EQ(logits.rows, 4);
  EXPECT_EQ(logits.row_bytes, kLogitsStride * 4);
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.row_bytes, kTableStride * 4);
  EXPECT_EQ(binding(record, "cache").rows, 7);
  EXPECT_EQ(binding(record, "q").row_bytes, 0);  // 0: the distance of rows is the row's
}

TEST(CallRecord, HasNoPitchWhereTheCallerPadsAsTheRowDoes) {
  std::int64_t place = 0;
  plumb_fp8_paged_mqa_logits_params call = paged_call(&place);
  call.logits_row_stride = 256;
  EXPECT_EQ(binding(recorded("fp8_paged_mqa_logits", call), "logits").row_bytes, 0);
}

TEST(CallRecord, BindsTheBlockTableOfAllRequestsThatTokensMayBelongTo) {
  std::int64_t place = 0;
  auto* words = reinterpret_cast<std::int32_t*>(&place);
  const plumb_compute_global_topk_indices_and_lens_params call{
      .topk_indices = words,
      .token_to_req = words,
      .block_table = words,
      .is_valid_token = reinterpret_cast<const std::uint8_t*>(words),
      .global_indices = words,
      .lens = words,
      .tokens = 4,
      .topk = 8,
      .requests = 2,
      .blocks_per_request = 5,
      .topk_indices_row_stride = 8,
      .block_table_row_stride = 5,
      .block_size = 64,
      .global_indices_row_stride = 8,
      .stream = nullptr};
  const CallRecord record = recorded("compute_global_topk_indices_and_lens", call);
  EXPECT_EQ(record.row.integer("blocks"), 5);
  EXPECT_EQ(binding(record, "block_table").rows, 3);
}

}  // namespace call_record_test
}  // namespace plumb::cases
