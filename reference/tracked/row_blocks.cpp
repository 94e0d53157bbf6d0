// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Assembles the estimate of all rows from blocks. Several threads add blocks.
class AssembledRows {
 public:
  AssembledRows(std::int64_t rows, Format output, bool structured) {
    whole_.output = output;
    whole_.structured = structured;
    whole_.resize(rows, 0);
  }

  void add(const TrackedNode& block, std::int64_t begin, std::int64_t rows) {
    {
      const std::lock_guard lock(mutex_);
      make_room(block, rows);
    }
    write_rows(block, begin, whole_);
  }
  Estimate finish() && { return std::move(whole_); }

 private:
  void make_room(const TrackedNode& block, std::int64_t rows) {
    const std::int64_t columns = block.sizes.empty() ? 1 : block.sizes.back();
    if (!has_columns_) {
      has_columns_ = true;
      whole_.resize(whole_.rows, columns);
    }
    if (columns != whole_.columns || elements_of(block.sizes) != rows * columns) {
      throw std::invalid_argument("estimate_by_blocks: a block of another size");
    }
    if (!block.centres.empty()) whole_.shift.resize(whole_.value.size());
  }

  std::mutex mutex_;
  Estimate whole_;
  bool has_columns_ = false;
};

}  // namespace

Estimate estimate_by_blocks(
    std::int64_t rows, std::int64_t rows_per_block, Format output,
    const std::function<Tracked(std::int64_t begin, std::int64_t end)>& of_rows, bool structured) {
  if (rows_per_block < 1) throw std::invalid_argument("estimate_by_blocks: no rows in a block");
  AssembledRows assembled(rows, output, structured);
  if (rows == 0) assembled.add(*of_rows(0, 0).node(), 0, 0);
  const std::int64_t blocks = (rows + rows_per_block - 1) / rows_per_block;
  parallel_for(blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t begin = block * rows_per_block;
      const std::int64_t end = std::min(rows, begin + rows_per_block);
      assembled.add(*of_rows(begin, end).node(), begin, end - begin);
    }
  });
  return std::move(assembled).finish();
}

}  // namespace plumb::reference
