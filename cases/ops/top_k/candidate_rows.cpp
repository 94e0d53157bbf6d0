// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/top_k/candidate_rows.h"

#include <algorithm>
#include <utility>

#include "cases/tensors/fill.h"
#include "reference/bound.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

std::vector<Parameter> candidate_parameters() {
  return {{"windows", 4, 1, 65536, "pairs of a start and an end"},
          {"row_repeat", 1, 1, 64, "consecutive rows that share a start and an end"},
          {"requests", 1, 1, 1024, "requests in one call, each with its own window of columns"},
          {"length", 512, 0, 1 << 23, "longest window, in columns"},
          {"length_step", 0, 0, 65536, "how much shorter each earlier window of a request is"},
          {"request_step", 0, 0, 1 << 23, "how much shorter each further request's window is"},
          {"lead", 0, 0, 1 << 23, "garbage columns in front of the first window"},
          {"gap", 0, 0, 1 << 23, "garbage columns behind every window"},
          {"cut", 0, 0, 1 << 23, "missing columns: the last window ends behind the columns"},
          {"row_gap", 0, 0, 1 << 23, "elements between two rows of logits"},
          {"bf16", 0, 0, 1, "1: logits in bf16; 0: in fp32"},
          {"topk_blocks", 16, 1, 65536, "candidate blocks per row"},
          {"block_size", 8, 1, 1024, "columns of a block"},
          kOutGap};
}

CandidateRows::CandidateRows(const Row& row, const CandidateShape& shape)
    : shape_(shape), pattern_(pattern_named(row)) {
  windows_ = {.rows = row.integer("windows"),
              .requests = row.integer("requests"),
              .length = row.integer("length"),
              .length_step = row.integer("length_step"),
              .request_step = row.integer("request_step"),
              .lead = row.integer("lead"),
              .gap = row.integer("gap")};
  ends_behind_ = row.integer("cut") > 0;
  if (shape.columns < 1) throw BadRow(row.where + ": no columns");
}

// Moves the ends of about half of the windows: to the end of the columns, and to where a window has
// as many blocks as the columns, one fewer or one more.
void CandidateRows::move_end(const Step& step, std::int64_t w, Window& window) const {
  const std::int64_t whole = shape_.columns / shape_.block_size * shape_.block_size;
  const std::int64_t last =
      (shape_.columns + shape_.block_size - 1) / shape_.block_size * shape_.block_size;
  const std::int64_t edges[] = {shape_.columns - window.start,     whole,   whole + 1, last,
                                shape_.columns - window.start + 1, last + 1};
  const std::uint64_t bits = random_bits(mix(step.seed, 77), static_cast<std::uint64_t>(w));
  if (bits % 2 == 0) return;
  const std::int64_t length = edges[(bits >> 1) % std::size(edges)];
  window.end = std::max(window.start, window.start + length);
}

void CandidateRows::fill(const Step& step, std::string_view name, TensorSet& tensors) const {
  HostTensor& logits = tensors.at(name);
  TensorSpec spec = logits.spec();
  spec.dtype = Dtype::f32;
  HostTensor wide = shape_.bf16 ? HostTensor(spec) : logits.alias();
  auto* starts = tensors.at("row_starts").data<std::int32_t>();
  auto* ends = tensors.at("row_ends").data<std::int32_t>();
  const WindowFill how{
      step.seed, step.fill, pattern_, static_cast<std::int32_t>(shape_.topk_blocks), 1, true};
  for (std::int64_t w = 0; w < shape_.rows / shape_.row_repeat; ++w) {
    const bool live = w < step.live;
    Window window = live ? windows_.of(step, w) : Window{shape_.columns, shape_.columns};
    if (live && ends_behind_ && step.fill == Fill::adversarial) move_end(step, w, window);
    starts[w] = static_cast<std::int32_t>(window.start);
    ends[w] = static_cast<std::int32_t>(window.end);
    for (std::int64_t row = w * shape_.row_repeat; live && row < (w + 1) * shape_.row_repeat;
         ++row) {
      fill_logits(wide, row, window.start, std::min(window.end, shape_.columns), how);
    }
  }
  fill_dead_logits(wide, step, live_rows(step));
  if (!shape_.bf16) return;
  for (std::int64_t i = 0; i < logits.extent(); ++i) {
    logits.data<std::uint16_t>()[i] = reference::encode_bf16(wide.data<float>()[i]);
  }
}

reference::BlockedLogits CandidateRows::reference(const TensorSet& tensors,
                                                  std::string_view name) const {
  return {.logits = tensors.at(name).data<std::byte>(),
          .bf16 = shape_.bf16,
          .row_starts = tensors.at("row_starts").data<std::int32_t>(),
          .row_ends = tensors.at("row_ends").data<std::int32_t>(),
          .rows = shape_.rows,
          .columns = shape_.columns,
          .row_stride = shape_.row_stride,
          .row_repeat = shape_.row_repeat,
          .block_size = shape_.block_size};
}

}  // namespace plumb::cases
