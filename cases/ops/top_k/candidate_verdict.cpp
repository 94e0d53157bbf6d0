// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/top_k/candidate_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cases/judge/right_values.h"
#include "reference/bound.h"

namespace plumb::cases {

namespace {

using reference::BlockScores;
using reference::CandidateError;
using reference::CandidateSelection;
using reference::WrongCandidate;

constexpr std::int32_t kTiedBlock = std::numeric_limits<std::int32_t>::max();

std::vector<BlockScores> all_scores(const CandidateSelection& input) {
  std::vector<BlockScores> scores(static_cast<std::size_t>(input.rows.rows));
  reference::parallel_for(input.rows.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) scores[row] = score_blocks(input, row);
  });
  return scores;
}

// Number of places of a right row where 0 instead of the stored block would be right too.
std::int64_t replaceable_places(const BlockScores& scores, std::int64_t k,
                                const std::int32_t* got) {
  if (scores.free) return k;
  if (std::find(got, got + k, 0) != got + k) return 1;
  const std::uint32_t least = tied_key(scores, k);
  const bool ties =
      least != 0 && scores.blocks.front().block == 0 && scores.blocks.front().key == least;
  if (!ties) return 0;
  return std::count_if(got, got + k, [&](std::int32_t block) {
    return std::any_of(scores.blocks.begin(), scores.blocks.end(), [&](const auto& score) {
      return score.block == block && score.key == least;
    });
  });
}

class CandidateTruth final : public Truth {
 public:
  CandidateTruth(std::vector<BlockScores> scores, std::int64_t k)
      : scores_(std::move(scores)), k_(k) {}

  TensorReport compare(const HostTensor& blocks, const RowMask&,
                       const ColumnRanges&) const override {
    TensorReport report;
    report.tensor = blocks.spec().name;
    report.rows_total = blocks.original_rows();
    report.rows_compared = std::ssize(scores_);
    report.elements_compared = report.rows_compared * k_;
    std::int64_t replaceable = 0, zeros = 0;
    std::vector<WrongCandidate> first;
    bool all_same = true;
    for (std::int64_t row = 0; row < report.rows_compared; ++row) {
      const auto* got = blocks.row<std::int32_t>(row);
      auto wrong = check_candidates(scores_[row], k_, got);
      report.wrong_elements += std::ssize(wrong);
      if (wrong.empty()) {
        replaceable += replaceable_places(scores_[row], k_, got);
        zeros += std::count(got, got + k_, 0);
        continue;
      }
      if (report.wrong_rows.empty()) first = wrong;
      for (const auto& place : wrong) all_same &= place.error == first.front().error;
      report.wrong_rows.push_back(row);
    }
    if (report.elements_compared > 0) {
      const auto all = static_cast<double>(report.elements_compared);
      report.observability = 1 - static_cast<double>(replaceable) / all;
      report.zero_share = static_cast<double>(zeros) / all;
    }
    if (!report.wrong_rows.empty()) describe(blocks, first, all_same, report);
    return report;
  }

  void put(const HostTensor& blocks, const RowMask&, const ColumnRanges&,
           RightValues& right) const override {
    std::vector<std::int32_t> best;
    for (const BlockScores& scores : scores_) {
      const auto row = best_blocks(scores, k_);
      best.insert(best.end(), row.begin(), row.end());
    }
    right.put(blocks, {}, {}, [&](std::int64_t row, std::int64_t place) {
      return static_cast<std::uint32_t>(best[static_cast<std::size_t>(row * k_ + place)]);
    });
  }

 private:
  void describe(const HostTensor& blocks, const std::vector<WrongCandidate>& first, bool all_same,
                TensorReport& report) const {
    const std::int64_t row = report.wrong_rows.front();
    const WrongCandidate& place = first.front();
    Mismatch mismatch;
    mismatch.row = blocks.original_row(row);
    mismatch.column = place.place;
    mismatch.coordinates = blocks.coordinates(row, place.place);
    mismatch.expected = place.expected;
    mismatch.got = blocks.row<std::int32_t>(row)[place.place];
    mismatch.ratio = std::numeric_limits<double>::infinity();
    report.margin = mismatch.ratio;
    report.wrong_rows = original_rows(blocks, std::move(report.wrong_rows));
    report.failures.push_back(fmt::format(
        "{}: {} wrong; row {} ({} candidate blocks) differs in {} of {} places (first {}: {})",
        report.tensor, rows_of(report.wrong_rows, report.rows_total), mismatch.row,
        scores_[row].blocks.size(), first.size(), k_, mismatch.coordinates, name_of(place.error)));
    if (all_same && place.error == CandidateError::missing) {
      report.pattern = "-1 in place of candidate blocks: blocks were dropped";
    }
    if (all_same && place.error == CandidateError::repeated) {
      report.pattern = "blocks returned twice crowd out others";
    }
    report.worst = std::move(mismatch);
  }

  std::vector<BlockScores> scores_;
  std::int64_t k_;
};

}  // namespace

Expectation expect_candidates(const HostTensor& blocks, const CandidateSelection& input) {
  return {std::make_shared<const HostTensor>(blocks.alias()),
          std::make_shared<const CandidateTruth>(all_scores(input), input.topk_blocks)};
}

HostTensor canonical_candidates(const HostTensor& blocks, const CandidateSelection& input,
                                const plumb_numerics& declared) {
  const std::vector<BlockScores> scores = all_scores(input);
  HostTensor canonical = blocks;
  for (std::int64_t row = 0; row < std::ssize(scores); ++row) {
    auto* places = canonical.row<std::int32_t>(row);
    const std::uint32_t least = tied_key(scores[row], input.topk_blocks);
    const bool open = declared.equal_keys == PLUMB_EQUAL_KEYS_ANY;
    if (open && scores[row].free) std::fill_n(places, input.topk_blocks, kTiedBlock);
    for (const auto& score : scores[row].blocks) {
      if (!open || score.key != least) continue;
      std::replace(places, places + input.topk_blocks, score.block, kTiedBlock);
    }
    std::sort(places, places + input.topk_blocks);
  }
  return canonical;
}

}  // namespace plumb::cases
