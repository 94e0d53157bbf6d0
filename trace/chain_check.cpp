// SPDX-License-Identifier: Apache-2.0
#include "trace/chain_check.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include "trace/memory_range.h"

namespace plumb::trace {

namespace {

constexpr std::size_t kMostFound = 100;
constexpr std::size_t kMostWrites = 256;  // last writes that are remembered for each storage

// The last write to a range of memory.
struct LastWrite {
  std::size_t call = 0;
  std::string name;
  const TraceTensor* tensor = nullptr;
  MemoryLayout layout;
  std::set<std::int64_t> gone;  // blocks overwritten by a later call
};

bool has_values(const TraceTensor& tensor) { return !tensor.data.empty(); }

// Pairs of indices of the blocks that both tensors stored: (index in the write, index in the read).
// A tensor without blocks counts as one block.
using BlockPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
BlockPairs common_blocks(const LastWrite& write, const TraceTensor& read) {
  const auto& wrote = write.tensor->blocks;
  if (!wrote && !read.blocks && write.gone.empty()) return {{0, 0}};
  if (read.shape.empty()) return {};
  BlockPairs pairs;
  const auto count = [](const TraceTensor& tensor) {
    return tensor.blocks ? std::ssize(*tensor.blocks) : tensor.shape.front();
  };
  const auto number = [](const TraceTensor& tensor, std::int64_t i) {
    return tensor.blocks ? (*tensor.blocks)[static_cast<std::size_t>(i)] : i;
  };
  const std::int64_t written = count(*write.tensor), looked_at = count(read);
  for (std::int64_t i = 0, j = 0; i < written && j < looked_at;) {
    const std::int64_t a = number(*write.tensor, i), b = number(read, j);
    if (a == b && !write.gone.contains(a)) pairs.emplace_back(i, j);
    i += a <= b;
    j += b <= a;
  }
  return pairs;
}

std::int64_t block_bytes(const TraceTensor& tensor, bool whole) {
  const std::int64_t all = tensor.elements() * tensor.type.bytes;
  return whole ? all : all / tensor.shape.front();
}

class ChainWalk {
 public:
  ChainWalk(const TraceStep& step, const StepBytes& bytes) : step_(step), bytes_(bytes) {
    report_.rank = step.rank;
    report_.step = step.step;
    report_.certain = step.complete;
  }

  // Reads happen when a call begins, writes when it ends. Calls may be nested.
  ChainReport walk() {
    std::vector<std::vector<std::size_t>> readers(step_.calls.size());
    for (std::size_t i = 0; i < step_.calls.size(); ++i) {
      readers[static_cast<std::size_t>(step_.calls[i].began)].push_back(i);
    }
    for (std::size_t i = 0; i < step_.calls.size(); ++i) {
      for (const std::size_t reader : readers[i]) {
        for (const auto& [name, tensor] : step_.calls[reader].before) read(reader, name, tensor);
      }
      for (const auto& [name, tensor] : step_.calls[i].after) write(i, name, tensor);
    }
    return std::move(report_);
  }

 private:
  void read(std::size_t call, const std::string& name, const TraceTensor& tensor) {
    if (tensor.storage == 0 || !has_values(tensor)) return;
    const auto writes = writes_.find(tensor.storage);
    const auto layout = layout_of(tensor);
    if (writes == writes_.end() || !layout) return;
    for (const LastWrite& write : writes->second) {
      if (write.layout == *layout) compare(write, call, name, tensor);
    }
  }

  // Records a write. Older writes to the same bytes are no longer the last ones.
  void write(std::size_t call, const std::string& name, const TraceTensor& tensor) {
    const auto layout = layout_of(tensor);
    if (!layout) return;
    // The address is unknown, so this write may overlap any tensor.
    if (tensor.storage == 0) {
      report_.certain = false;
      return;
    }
    std::deque<LastWrite>& writes = writes_[tensor.storage];
    std::erase_if(writes, [&](LastWrite& older) {
      if (!older.layout.range.overlaps(layout->range)) return false;
      if (!tensor.blocks || older.layout != *layout) return true;
      older.gone.insert(tensor.blocks->begin(), tensor.blocks->end());
      const auto& blocks = older.tensor->blocks;
      return blocks && std::ranges::all_of(
                           *blocks, [&](std::int64_t block) { return older.gone.contains(block); });
    });
    if (!has_values(tensor)) return;
    if (writes.size() == kMostWrites) writes.pop_front();
    writes.push_back(
        {.call = call, .name = name, .tensor = &tensor, .layout = *layout, .gone = {}});
  }

  void compare(const LastWrite& write, std::size_t call, const std::string& name,
               const TraceTensor& tensor) {
    const BlockPairs pairs = common_blocks(write, tensor);
    if (pairs.empty()) return;
    ++report_.checked;
    const bool same_blocks = write.tensor->blocks == tensor.blocks;
    if (same_blocks && write.tensor->data == tensor.data) return;
    BrokenChain chain{.writer = place_of(step_, write.call),
                      .reader = place_of(step_, call),
                      .wrote = write.name,
                      .read = name,
                      .first = {}};
    count_differences(write, tensor, pairs, chain);
    if (chain.bytes == 0) return;
    ++report_.broken;
    if (report_.found.size() < kMostFound) report_.found.push_back(std::move(chain));
  }

  void count_differences(const LastWrite& write, const TraceTensor& tensor, const BlockPairs& pairs,
                         BrokenChain& chain) const {
    const StoredBytes wrote = bytes_.of(*write.tensor), read = bytes_.of(tensor);
    const bool whole = !write.tensor->blocks && !tensor.blocks && write.gone.empty();
    const std::int64_t size = block_bytes(tensor, whole), element = tensor.type.bytes;
    for (const auto& [from, to] : pairs) {
      chain.of_elements += size / element;
      for (std::int64_t i = 0; i < size; i += element) {
        const std::byte* const a = wrote.bytes.data() + from * size + i;
        const std::byte* const b = read.bytes.data() + to * size + i;
        if (std::memcmp(a, b, static_cast<std::size_t>(element)) == 0) continue;
        for (std::int64_t k = 0; k < element; ++k) chain.bytes += a[k] != b[k];
        if (chain.elements++ == 0) chain.first = tensor.coordinates((to * size + i) / element);
      }
    }
  }

  const TraceStep& step_;
  const StepBytes& bytes_;
  std::map<std::uint64_t, std::deque<LastWrite>> writes_;  // by storage
  ChainReport report_;
};

}  // namespace

ChainReport check_chains(const TraceStep& step, const StepBytes& bytes) {
  return ChainWalk(step, bytes).walk();
}

}  // namespace plumb::trace
