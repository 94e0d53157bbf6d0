// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

// An estimate of all rows, made of those of blocks. Blocks come from several threads.
class AssembledRows {
 public:
  AssembledRows(std::int64_t rows, Format output, bool structured) {
    whole_.output = output;
    whole_.structured = structured;
    whole_.resize(rows, 0);
  }

  void add(const Estimate& block, std::int64_t begin, std::int64_t rows) {
    {
      const std::lock_guard lock(mutex_);
      make_room(block, rows);
    }
    const auto place = [&](const std::vector<double>& from, std::vector<double>& to,
                           std::int64_t columns) {
      if (!from.empty()) std::ranges::copy(from, to.begin() + begin * columns);
    };
    place(block.value, whole_.value, block.columns);
    place(block.sigma, whole_.sigma, block.columns);
    place(block.worst, whole_.worst, block.columns);
    place(block.shift, shift_, block.columns);
    place(block.row_mean_sigma, whole_.row_mean_sigma, 1);
    place(block.row_systematic, whole_.row_systematic, 1);
    place(block.row_concentration, whole_.row_concentration, 1);
  }
  Estimate finish() && {
    whole_.shift = std::move(shift_);
    return std::move(whole_);
  }

 private:
  void make_room(const Estimate& block, std::int64_t rows) {
    if (!has_columns_) {
      has_columns_ = true;
      whole_.resize(whole_.rows, block.columns);
    }
    if (block.columns != whole_.columns || block.rows != rows) {
      throw std::invalid_argument("estimate_by_blocks: a block of another size");
    }
    if (!block.shift.empty()) shift_.resize(whole_.value.size());
  }

  std::mutex mutex_;
  Estimate whole_;
  std::vector<double> shift_;
  bool has_columns_ = false;
};

}  // namespace

Estimate estimate_by_blocks(
    std::int64_t rows, std::int64_t rows_per_block, Format output,
    const std::function<Tracked(std::int64_t begin, std::int64_t end)>& of_rows, bool structured) {
  if (rows_per_block < 1) throw std::invalid_argument("estimate_by_blocks: no rows in a block");
  AssembledRows assembled(rows, output, structured);
  const std::int64_t blocks = (rows + rows_per_block - 1) / rows_per_block;
  parallel_for(blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t begin = block * rows_per_block;
      const std::int64_t end = std::min(rows, begin + rows_per_block);
      assembled.add(estimate_of(of_rows(begin, end), output, structured), begin, end - begin);
    }
  });
  return std::move(assembled).finish();
}

}  // namespace plumb::reference
