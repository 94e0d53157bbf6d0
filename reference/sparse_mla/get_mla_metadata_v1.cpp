// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/get_mla_metadata_v1.h"

#include <algorithm>
#include <utility>

namespace plumb::reference {

namespace {

using Kind = MlaDefectKind;

constexpr std::int64_t kKeysPerBlock = 16, kItemOverhead = 16;

std::int32_t narrow(std::int64_t number) { return static_cast<std::int32_t>(number); }
std::size_t place(std::int64_t number) { return static_cast<std::size_t>(number); }

std::int64_t block_count(const MlaPlanShape& shape, std::int64_t row) {
  return (shape.end(row) - shape.begin(row) + kKeysPerBlock - 1) / kKeysPerBlock;
}

// Writes the plan item by item.
class MlaPlanner {
 public:
  explicit MlaPlanner(const MlaPlanShape& shape) : shape_(shape) {
    plan_.work_indptr.assign(place(shape.num_cu + 1), 0);
    plan_.items.resize(place(shape.most_items()));
    plan_.reduce_indptr.assign(place(shape.max_rows + 1), 0);
    plan_.final_queries.resize(place(shape.max_rows));
    plan_.partials.assign(place(shape.most_partials()), 0);
  }

  // The items of one compute unit.
  void take(std::int64_t left) {
    while (row_ < shape_.rows()) {
      const std::int64_t rest = block_count(shape_, row_) - block_;
      if (left < rest + kItemOverhead) {
        if (left > kItemOverhead) cut(left - kItemOverhead);
        return;
      }
      left -= rest + kItemOverhead;
      finish_row();
    }
  }
  MlaMetadata finish() {
    for (std::int64_t row = row_ + 1; row <= shape_.max_rows; ++row) {
      plan_.reduce_indptr[place(row)] = narrow(listed_);
    }
    return std::move(plan_);
  }
  void end_unit(std::int64_t unit) { plan_.work_indptr[place(unit + 1)] = narrow(items_); }

 private:
  std::int64_t key() const { return shape_.begin(row_) + kKeysPerBlock * block_; }
  void add(std::int64_t partial, std::int64_t end) {
    plan_.items[place(items_++)] = {narrow(row_),
                                    narrow(partial),
                                    narrow(row_),
                                    narrow(row_ + 1),
                                    narrow(key()),
                                    narrow(end),
                                    narrow(shape_.end(row_) - end)};
  }
  void cut(std::int64_t blocks) {
    add(partials_++, key() + kKeysPerBlock * blocks);
    block_ += blocks;
    ++cuts_;
  }
  void finish_row() {
    add(cuts_ > 0 ? partials_++ : -1, shape_.end(row_));
    if (cuts_ > 0) plan_.final_queries[place(row_)] = {narrow(row_), narrow(row_ + 1)};
    for (std::int64_t back = cuts_ + 1; cuts_ > 0 && back > 0; --back) {
      plan_.partials[place(listed_++)] = narrow(partials_ - back);
    }
    plan_.reduce_indptr[place(++row_)] = narrow(listed_);
    block_ = cuts_ = 0;
  }

  const MlaPlanShape& shape_;
  MlaMetadata plan_ = {};
  std::int64_t row_ = 0, block_ = 0, cuts_ = 0;  // where the item before ended
  std::int64_t items_ = 0, partials_ = 0, listed_ = 0;
};

class MlaPlanCheck {
 public:
  MlaPlanCheck(const MlaMetadata& plan, const MlaPlanShape& shape)
      : plan_(plan),
        shape_(shape),
        items_(place(shape.rows())),
        slots_(place(shape.rows())),
        writer_(place(shape.most_partials()), -1) {}

  std::vector<MlaDefect> run() {
    if (!check_indptr(MlaBuffer::work_indptr, plan_.work_indptr, shape_.most_items())) {
      return std::move(found_);
    }
    for (std::int64_t item = 0; item < plan_.work_indptr.back(); ++item) add(item);
    for (std::int64_t row = 0; row < shape_.rows(); ++row) {
      check_keys(row);
      check_partials(row);
    }
    if (check_indptr(MlaBuffer::reduce_indptr, plan_.reduce_indptr, shape_.most_partials())) {
      for (std::int64_t row = 0; row < shape_.max_rows; ++row) check_list(row);
    }
    return std::move(found_);
  }

 private:
  const MlaWorkItem& item_at(std::int64_t item) const { return plan_.items[place(item)]; }
  void wrong_item(Kind kind, std::int64_t item, std::int64_t row, std::int64_t begin = 0,
                  std::int64_t end = 0, std::int64_t other = -1) {
    found_.push_back({MlaBuffer::work_info_set, kind, item, other, row, begin, end});
  }

  bool check_indptr(MlaBuffer buffer, const std::vector<std::int32_t>& indptr, std::int64_t most) {
    const std::size_t before = found_.size();
    if (indptr[0] != 0) found_.push_back({buffer, Kind::start, 0, -1, -1, indptr[0], 0});
    for (std::size_t i = 1; i < indptr.size(); ++i) {
      const auto entry = static_cast<std::int64_t>(i);
      if (indptr[i] < indptr[i - 1]) {
        found_.push_back({buffer, Kind::backwards, entry, -1, -1, indptr[i], indptr[i - 1]});
      } else if (indptr[i] > most) {
        found_.push_back({buffer, Kind::too_far, entry, -1, -1, indptr[i], most});
      }
    }
    return found_.size() == before;
  }

  // Counts the item for its row, unless the item's row or keys do not exist.
  void add(std::int64_t number) {
    const MlaWorkItem& item = item_at(number);
    const std::int64_t row = item.row;
    if (row < 0 || row >= shape_.rows()) return wrong_item(Kind::no_row, number, row);
    if (item.first_query != row || item.last_query != row + 1) {
      wrong_item(Kind::query, number, row, item.first_query, item.last_query);
    }
    const std::int64_t first = shape_.begin(row), last = shape_.end(row);
    if (item.begin < first || item.end > last || item.end < item.begin ||
        (item.begin == item.end && first != last)) {
      return wrong_item(Kind::no_keys, number, row, item.begin, item.end);
    }
    if (item.behind != last - item.end) {
      wrong_item(Kind::behind, number, row, item.behind, last - item.end);
    }
    items_[place(row)].push_back(number);
  }

  void check_keys(std::int64_t row) {
    std::vector<std::int64_t>& own = items_[place(row)];
    std::sort(own.begin(), own.end(), [this](std::int64_t a, std::int64_t b) {
      return std::pair(item_at(a).begin, a) < std::pair(item_at(b).begin, b);
    });
    std::int64_t done = shape_.begin(row), last = -1;
    for (const std::int64_t number : own) {
      const MlaWorkItem& item = item_at(number);
      if (item.begin > done) missing(number, row, done, item.begin);
      if (item.begin < done || (last >= 0 && item.begin == item.end)) {
        wrong_item(Kind::twice, number, row, item.begin, 0, last);
      }
      if (item.end >= done) last = number;
      done = std::max<std::int64_t>(done, item.end);
    }
    if (own.empty()) last = std::max(plan_.work_indptr.back() - 1, 0);
    if (done < shape_.end(row) || own.empty()) missing(last, row, done, shape_.end(row));
  }
  void missing(std::int64_t number, std::int64_t row, std::int64_t begin, std::int64_t end) {
    wrong_item(Kind::missing, number, row, begin, end);
  }

  void check_partials(std::int64_t row) {
    const std::vector<std::int64_t>& own = items_[place(row)];
    for (const std::int64_t number : own) {
      const std::int64_t slot = item_at(number).partial;
      const bool split = own.size() > 1;
      if (split && slot == -1) wrong_item(Kind::whole, number, row);
      if (!split && slot != -1) wrong_item(Kind::lone_partial, number, row, slot);
      if (split && slot != -1) use(slot, number, row);
    }
    std::vector<std::int64_t>& slots = slots_[place(row)];
    std::sort(slots.begin(), slots.end());
    if (slots.empty() || slots.back() - slots.front() < std::ssize(slots)) return;
    wrong_item(Kind::scattered, own.front(), row, slots.front(), slots.back() + 1);
  }
  void use(std::int64_t slot, std::int64_t number, std::int64_t row) {
    if (slot < 0 || slot >= shape_.most_partials()) {
      return wrong_item(Kind::no_slot, number, row, slot, shape_.most_partials());
    }
    std::int64_t& writer = writer_[place(slot)];
    if (writer >= 0) return wrong_item(Kind::slot_twice, number, row, slot, 0, writer);
    writer = number;
    slots_[place(row)].push_back(slot);
  }

  // Rows behind the batch have empty lists: the reader goes through the whole buffer.
  void check_list(std::int64_t row) {
    const std::int64_t first = plan_.reduce_indptr[place(row)];
    const std::int64_t count = plan_.reduce_indptr[place(row + 1)] - first;
    static const std::vector<std::int64_t> kNone;
    const std::vector<std::int64_t>& slots = row < shape_.rows() ? slots_[place(row)] : kNone;
    if (count != std::ssize(slots)) {
      found_.push_back(
          {MlaBuffer::reduce_indptr, Kind::count, row + 1, -1, row, count, std::ssize(slots)});
      return;
    }
    if (count == 0) return;
    const auto [begin, end] = plan_.final_queries[place(row)];
    if (begin != row || end != row + 1) {
      found_.push_back({MlaBuffer::final_map, Kind::final_row, row, -1, row, begin, end});
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t listed = plan_.partials[place(first + i)], right = slots[place(i)];
      if (listed == right) continue;
      found_.push_back({MlaBuffer::partial_map, Kind::listed, first + i, -1, row, listed, right});
    }
  }

  const MlaMetadata& plan_;
  const MlaPlanShape& shape_;
  std::vector<std::vector<std::int64_t>> items_;  // [rows], in the order of their keys
  std::vector<std::vector<std::int64_t>> slots_;  // [rows] partials, ascending
  std::vector<std::int64_t> writer_;              // [most_partials] item; -1: none
  std::vector<MlaDefect> found_ = {};
};

}  // namespace

std::int64_t MlaPlanShape::most_partials() const {
  return std::min(most_items(), 2 * (num_cu - 1));
}

MlaMetadata make_mla_metadata(const MlaPlanShape& shape, std::int64_t max_split) {
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < shape.rows(); ++row) {
    total += block_count(shape, row) + kItemOverhead;
  }
  const std::int64_t parts =
      max_split < 0 ? shape.num_cu : std::min(shape.num_cu, max_split * shape.rows());
  MlaPlanner planner(shape);
  for (std::int64_t unit = 0; unit < shape.num_cu; ++unit) {
    planner.take((total + parts - 1) / parts + kItemOverhead);
    planner.end_unit(unit);
  }
  return planner.finish();
}

std::vector<MlaDefect> check_mla_metadata(const MlaMetadata& plan, const MlaPlanShape& shape) {
  return MlaPlanCheck(plan, shape).run();
}

}  // namespace plumb::reference
