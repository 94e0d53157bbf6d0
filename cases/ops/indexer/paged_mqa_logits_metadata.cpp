// SPDX-License-Identifier: Apache-2.0
//
// Cases of paged_mqa_logits_metadata. A planner may divide the segments among the slots in any way
// that keeps their order, so the verdict only checks whether each segment is in exactly one slot.
// The batch has live and padded requests; padded ones have length 0.
#include "reference/indexer/paged_mqa_logits_metadata.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/judge/right_values.h"
#include "cases/judge/unwritten.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace paged_mqa_logits_metadata_cases {

using reference::PagedMqaWork;
using reference::Schedule;
using reference::ScheduleDefect;
using reference::ScheduleEntry;
using Kind = reference::ScheduleDefectKind;

using P = plumb_paged_mqa_logits_metadata_params;

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests), slots = t.scalar("slots", &P::slots);
  t.scalar("split_kv", &P::split_kv);
  t.scalar("atoms", &P::atoms);
  const Formula next_n = t.scalar("next_n", &P::next_n);
  const Formula dims = t.scalar("context_lens_dims", &P::context_lens_dims);
  const Formula lens = (dims - 1) * (next_n - 1) + 1;
  const Formula stride = t.scalar("context_lens_row_stride", &P::context_lens_row_stride,
                                  lens + parameter("context_lens_gap"));
  t.input("context_lens", &P::context_lens, {requests, lens}, "of each request or each row")
      .strides({stride, 1});
  t.output("schedule", &P::schedule, {slots + 1, 2}, "atom and segment where each slot begins");
  t.strides({{"schedule_row_stride", &P::schedule_row_stride}});
  return requests;
}

Schedule schedule_of(const HostTensor& stored) {
  Schedule schedule;
  for (std::int64_t row = 0; row < stored.rows(); ++row) {
    const auto* entry = stored.row<std::int32_t>(row);
    schedule.push_back({entry[0], entry[1]});
  }
  return schedule;
}

std::string text_of(const ScheduleEntry& entry) {
  return fmt::format("(atom {}, segment {})", entry.atom, entry.segment);
}

// "request 3 (length 1000): segment 2 of 4 of its atom 0"
std::string segment_text(const PagedMqaWork& work, const ScheduleDefect& defect) {
  return fmt::format("request {} (length {}): segment {} of {} of its atom {}", defect.request,
                     work.lengths[static_cast<std::size_t>(defect.request)], defect.segment,
                     work.segments(defect.request), defect.atom);
}

// ", and 3 behind it"
std::string others_text(const ScheduleDefect& defect) {
  return defect.missing < 2 ? "" : fmt::format(", and {} behind it", defect.missing - 1);
}

std::string text_of(const PagedMqaWork& work, const Schedule& schedule,
                    const ScheduleDefect& defect) {
  const auto entry = static_cast<std::size_t>(defect.entry);
  const std::string at = text_of(schedule[entry]);
  switch (defect.kind) {
    case Kind::no_atom:
      return fmt::format("entry {} is {}, and {} requests have {} atoms", entry, at,
                         work.requests(), work.requests() * work.atoms);
    case Kind::no_segment:
      if (defect.request >= work.requests()) {
        return fmt::format("entry {} is {}; behind the last atom comes segment 0", entry, at);
      }
      return fmt::format("entry {} is {}, and request {} (length {}) has {} segments", entry, at,
                         defect.request, work.lengths[static_cast<std::size_t>(defect.request)],
                         work.segments(defect.request));
    case Kind::backwards:
      return fmt::format("slot {} begins at {} and ends in front of it, at {}{}", entry - 1,
                         text_of(schedule[entry - 1]), at,
                         defect.missing == 0 ? ""
                                             : ": in two slots is " + segment_text(work, defect) +
                                                   others_text(defect));
    case Kind::before:
      return fmt::format("in no slot is {}{}: the first slot begins at {}",
                         segment_text(work, defect), others_text(defect), at);
    case Kind::behind:
      return fmt::format("in no slot is {}{}: the last slot ends at {}", segment_text(work, defect),
                         others_text(defect), at);
  }
  return "";
}

class ScheduleTruth final : public Truth {
 public:
  // `first_rows`: lengths of the first query row of each request, which a planner may take by
  // mistake.
  ScheduleTruth(PagedMqaWork work, std::vector<std::int64_t> first_rows)
      : work_(std::move(work)), of_first_rows_(work_) {
    of_first_rows_.lengths = std::move(first_rows);
  }

  TensorReport compare(const HostTensor& stored, const RowMask&,
                       const ColumnRanges&) const override {
    const Schedule schedule = schedule_of(stored);
    TensorReport report{.tensor = stored.spec().name,
                        .rows_compared = stored.rows(),
                        .elements_compared = stored.elements(),
                        .rows_total = stored.rows()};
    const auto zeros = std::count_if(schedule.begin(), schedule.end(),
                                     [](const auto& entry) { return entry == ScheduleEntry{}; });
    report.zero_share = static_cast<double>(zeros) / static_cast<double>(schedule.size());
    report.observability = 1 - report.zero_share;
    const std::vector<ScheduleDefect> defects = check_schedule(work_, schedule);
    if (!defects.empty()) add_defects(stored, schedule, defects, report);
    return report;
  }
  // Writes plumb's own schedule, which is one of several right ones, as the right values.
  void put(const HostTensor& stored, const RowMask&, const ColumnRanges&,
           RightValues& right) const override {
    const Schedule schedule = paged_mqa_schedule(work_, reference::LargerSlots::last);
    right.put(stored, {}, {}, [&](std::int64_t row, std::int64_t column) {
      const ScheduleEntry& entry = schedule[static_cast<std::size_t>(row)];
      return static_cast<std::uint32_t>(column == 0 ? entry.atom : entry.segment);
    });
  }

 private:
  void add_defects(const HostTensor& stored, const Schedule& schedule,
                   const std::vector<ScheduleDefect>& defects, TensorReport& report) const {
    constexpr std::size_t kMostLines = 3;
    for (std::size_t i = 0; i < defects.size(); ++i) {
      if (report.wrong_rows.empty() || report.wrong_rows.back() != defects[i].entry) {
        report.wrong_rows.push_back(defects[i].entry);
      }
      if (i >= kMostLines) continue;
      report.failures.push_back(
          fmt::format("{}: {}", report.tensor, text_of(work_, schedule, defects[i])));
    }
    if (defects.size() > kMostLines) {
      report.failures.push_back(fmt::format("{}: {} more defects, in entries {}", report.tensor,
                                            defects.size() - kMostLines,
                                            row_ranges(report.wrong_rows)));
    }
    report.wrong_elements = 2 * std::ssize(report.wrong_rows);
    report.margin = reference::kInfinity;
    report.pattern = pattern_of(stored, schedule, report.wrong_rows);
  }

  std::string pattern_of(const HostTensor& stored, const Schedule& schedule,
                         const std::vector<std::int64_t>& wrong) const {
    const auto unwritten = std::count_if(wrong.begin(), wrong.end(), [&](std::int64_t row) {
      return row_holds_poison(stored, row);
    });
    if (unwritten > 0) {
      return fmt::format("{} of {} wrong entries: {}", unwritten, wrong.size(), kNeverWritten);
    }
    if (of_first_rows_.lengths != work_.lengths &&
        check_schedule(of_first_rows_, schedule).empty()) {
      return "right for the lengths of the first query row of each request; the last one counts";
    }
    return "";
  }

  PagedMqaWork work_, of_first_rows_;
};

class PagedMqaLogitsMetadataProblem final : public TableProblem<P> {
 public:
  PagedMqaLogitsMetadataProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        length_(row.integer("length")),
        lengths_(row.word("lengths")) {}

  // The length of each query row of a request is smaller than that of the next row. Exact fill: by
  // one token, as in speculative decoding. Real: by one segment. Adversarial: all rows but the last
  // are empty.
  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& lens = tensors.at("context_lens");
    const std::int64_t per_row[] = {1, p_.split_kv, length_ + 1};
    const std::int64_t less = per_row[static_cast<int>(step.fill)];
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const std::int64_t length = request < step.live ? length_of(step, request) : 0;
      for (std::int64_t i = 0; i < lens.columns(); ++i) {
        const std::int64_t own = length - less * (lens.columns() - 1 - i);
        lens.row<std::int32_t>(request)[i] =
            static_cast<std::int32_t>(std::max<std::int64_t>(own, 0));
      }
    }
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const HostTensor& lens = tensors.at("context_lens");
    PagedMqaWork work{{}, p_.split_kv, p_.atoms, p_.slots};
    std::vector<std::int64_t> first_rows;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const auto* own = lens.row<std::int32_t>(request);
      work.lengths.push_back(own[lens.columns() - 1]);
      first_rows.push_back(own[0]);
      if (work.lengths.back() < 0 || own[0] < 0) {
        throw BadRow(fmt::format("request {} has a length below 0", request));
      }
    }
    const HostTensor& schedule = tensors.at("schedule");
    return {{std::make_shared<const HostTensor>(schedule.alias()),
             std::make_shared<const ScheduleTruth>(std::move(work), std::move(first_rows))}};
  }

  double cost() const override {
    constexpr double kRequest = 4, kThread = 30;
    return static_cast<double>(p_.slots + 1) *
           (kThread + 2 * kRequest * static_cast<double>(p_.requests));
  }
  double checked_factor() const override { return 20; }

 private:
  // Length of a live request. The seed rotates the lengths among requests, so that a replay with
  // the lengths of an earlier step is wrong.
  std::int64_t length_of(const Step& step, std::int64_t request) const {
    const std::uint64_t seed = mix(step.seed, 1);
    const std::int64_t turn = integer(seed, 0, 0, step.live - 1);
    const std::int64_t place = (request + turn) % step.live;
    const std::int64_t any = integer(seed, static_cast<std::uint64_t>(request) + 1, 0, length_);
    if (lengths_ == "random") return any;
    if (lengths_ == "one_long") return place == 0 ? length_ : 1;
    if (lengths_ == "zeros") return has_none(step, request) ? 0 : std::max<std::int64_t>(any, 1);
    if (lengths_ != "borders") return length_;
    const std::int64_t edges[] = {-1, 0, 1, 1 - p_.split_kv, p_.split_kv + 1, p_.split_kv};
    return std::min(length_, p_.split_kv + edges[place % std::ssize(edges)]);
  }

  // True for requests of length 0: the first, the last, and a few in the middle.
  static bool has_none(const Step& step, std::int64_t request) {
    const std::int64_t third = step.live / 3;
    return request == 0 || request == step.live - 1 || (request > third && request < 2 * third);
  }

  std::int64_t length_;
  std::string lengths_;
};

}  // namespace paged_mqa_logits_metadata_cases

OpDefinition define_paged_mqa_logits_metadata() {
  using namespace paged_mqa_logits_metadata_cases;
  OpDefinition op;
  op.name = "paged_mqa_logits_metadata";
  op.summary = "lightning indexer: which block of the paged logits kernel works on which segments";
  op.parameters = {{"requests", 4, 1, 65536, "padded batch"},
                   {"slots", 132, 1, 4096, "blocks of the kernel that reads the schedule"},
                   {"next_n", 1, 1, 16, "query rows per request"},
                   {"atoms", 1, 1, 16, "groups of query rows per request, each with its own work"},
                   {"split_kv", 256, 1, 65536, "tokens of a segment"},
                   {"context_lens_dims", 2, 1, 2, "1: one length per request; 2: one per row"},
                   {"context_lens_gap", 0, 0, 1024, "elements between the lengths of two requests"},
                   {"length", 4096, 0, 1 << 24, "longest context"},
                   kOutGap};
  op.word_parameters = {{"lengths",
                         {"full", "random", "borders", "one_long", "zeros"},
                         "of the requests: length, any, around segments, one of length among "
                         "ones, zeros among any"}};
  op.make_problem = make_problem_of<PagedMqaLogitsMetadataProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
