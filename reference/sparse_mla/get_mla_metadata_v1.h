// SPDX-License-Identifier: Apache-2.0
//
// get_mla_metadata_v1: AITER's plan of a split MLA decode (docs/operations/sparse_mla.md, 1.10).
// Any division of the keys is right, so the check tests what the plan promises to its two readers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace plumb::reference {

// The batch and the sizes of the buffers. Row v has the keys of batch row v / ratio.
struct MlaPlanShape {
  std::vector<std::int64_t> kv_indptr;  // [batch + 1], never decreases
  std::int64_t ratio = 1, max_rows = 1, num_cu = 1;

  std::int64_t rows() const { return (static_cast<std::int64_t>(kv_indptr.size()) - 1) * ratio; }
  std::int64_t begin(std::int64_t row) const { return kv_indptr[index(row)]; }
  std::int64_t end(std::int64_t row) const { return kv_indptr[index(row) + 1]; }
  std::int64_t most_items() const { return max_rows + num_cu - 1; }
  std::int64_t most_partials() const;

 private:
  std::size_t index(std::int64_t row) const { return static_cast<std::size_t>(row / ratio); }
};

// One item of work_info_set. partial < 0: the item has its whole row.
struct MlaWorkItem {
  std::int32_t row = 0, partial = -1;
  std::int32_t first_query = 0, last_query = 0;
  std::int32_t begin = 0, end = 0;  // keys
  std::int32_t behind = 0;          // keys of the row from `end` on
};

// The contents of the buffers.
struct MlaMetadata {
  std::vector<std::int32_t> work_indptr;                   // [num_cu + 1]
  std::vector<MlaWorkItem> items;                          // [most_items]
  std::vector<std::int32_t> reduce_indptr;                 // [max_rows + 1]
  std::vector<std::array<std::int32_t, 2>> final_queries;  // [max_rows]
  std::vector<std::int32_t> partials;                      // [most_partials]
};

// AITER's planner: each compute unit gets the same payload, in blocks of 16 keys. An item costs its
// blocks and 16 more. max_split < 0: no limit.
MlaMetadata make_mla_metadata(const MlaPlanShape& shape, std::int64_t max_split);

enum class MlaBuffer { work_indptr, work_info_set, reduce_indptr, final_map, partial_map };

enum class MlaDefectKind {
  start,         // an indptr begins with `begin` and not with 0
  backwards,     // `entry` of an indptr is `begin`, and the one before is `end`
  too_far,       // `entry` of an indptr is `begin`, and the buffer has `end` entries
  no_row,        // item `entry` has `row`, which does not exist
  query,         // item `entry` has the queries [begin, end), and its row has others
  no_keys,       // item `entry` has the keys [begin, end), which its row has not, or no key
  behind,        // item `entry` says that its row has `begin` more keys, and it has `end`
  missing,       // no item has the keys [begin, end) of `row`. begin == end: the row has no item.
                 // `entry` is an item with keys next to these, or the last item of all
  twice,         // items `other` and `entry` both have keys of `row` from `begin` on
  whole,         // item `entry` says that it has all of `row`, and the row has other items
  lone_partial,  // item `entry` writes a partial, and `row` has no other item
  no_slot,       // item `entry` writes partial `begin`, and the buffer has `end`
  slot_twice,    // items `other` and `entry` write partial `begin`
  scattered,     // the partials of `row` are not consecutive: they lie in [begin, end)
  count,         // `row` has `begin` entries in the reduce list, and its items write `end` partials
  final_row,     // `row` is reduced to the queries [begin, end)
  listed         // `entry` of the reduce list is `begin`, and should be partial `end` of `row`
};
struct MlaDefect {
  MlaBuffer buffer = MlaBuffer::work_indptr;
  MlaDefectKind kind = MlaDefectKind::start;
  std::int64_t entry = 0, other = -1, row = -1, begin = 0, end = 0;
};

std::vector<MlaDefect> check_mla_metadata(const MlaMetadata& plan, const MlaPlanShape& shape);

}  // namespace plumb::reference
