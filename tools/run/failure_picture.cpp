// SPDX-License-Identifier: Apache-2.0
#include "tools/run/failure_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cases/judge/right_values.h"
#include "tools/run/report_number.h"

namespace plumb::tools {

namespace {

using cases::Expectation;
using cases::HostTensor;
using cases::Mismatch;

constexpr std::int64_t kMostCells = 64;
constexpr std::size_t kMostPictures = 4, kMostWorst = 12, kMostValues = 96;
constexpr int kBoundLevel = 20, kOctaves = 41, kFirstOctave = -16;

constexpr std::string_view kLevels =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

int level_of(double ratio) {
  constexpr int kLast = static_cast<int>(kLevels.size()) - 1;
  if (ratio == 0) return 0;
  if (!(ratio < std::numeric_limits<double>::infinity())) return kLast;
  const int level = kBoundLevel + static_cast<int>(std::ceil(2 * std::log2(ratio)));
  // A ratio close to 1 stays on its side of the bound, however the logarithm rounds.
  return ratio <= 1 ? std::clamp(level, 1, kBoundLevel)
                    : std::clamp(level, kBoundLevel + 1, kLast - 1);
}

double ratio_of(double got, double centre, double bound) {
  if (got == centre || (std::isnan(got) && std::isnan(centre))) return 0;
  const double ratio = std::abs(got - centre) / bound;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

// Collects the elements of a tensor into a picture.
class PictureMaker {
 public:
  PictureMaker(const Expectation& one, bool exact) : one_(one), stored_(*one.stored) {
    const cases::TensorSpec& spec = stored_.spec();
    picture_.tensor = spec.name + one.basis;
    picture_.dtype = cases::name_of(spec.dtype);
    picture_.format = spec.format;
    picture_.scales = spec.scale_layout;
    picture_.shape = spec.shape;
    picture_.exact = exact;
    picture_.rows = stored_.rows();
    picture_.columns = stored_.columns();
    high_ = std::min(kMostCells, picture_.rows);
    wide_ = std::min(kMostCells, picture_.columns);
    levels_.assign(static_cast<std::size_t>(high_ * wide_), -1);
    if (!exact) picture_.counts.assign(kOctaves, 0);
  }

  // `of(row, column)` returns expected value and bound of a promised element.
  void add_all(const auto& of) {
    for (std::int64_t row = 0; row < stored_.rows(); ++row) {
      const bool promised = cases::is_promised(one_.promised, row);
      const cases::ColumnRange columns = cases::columns_of(one_.columns, stored_, row);
      const std::int64_t compared = promised ? columns.end - columns.begin : 0;
      picture_.unpromised += stored_.columns() - compared;
      for (std::int64_t column = columns.begin; promised && column < columns.end; ++column) {
        const auto [expected, bound] = of(row, column);
        add({row, column, {}, expected, stored_.value(row, column), bound, 0});
      }
    }
  }

  TensorPicture take(std::int64_t live, std::int64_t capacity) {
    mark_rows(live, capacity);
    for (std::int64_t y = 0; y < high_; ++y) {
      std::string line;
      for (std::int64_t x = 0; x < wide_; ++x) {
        const int level = levels_[static_cast<std::size_t>(y * wide_ + x)];
        line += level < 0 ? '.' : kLevels[static_cast<std::size_t>(level)];
      }
      picture_.cells.push_back(line);
    }
    take_worst();
    picture_.wrong_values = values_of(wrong_);
    picture_.right_values = values_of(right_);
    return std::move(picture_);
  }

 private:
  // Keeps every 2^n-th element of a long list, in order.
  struct Sampled {
    std::vector<std::pair<double, double>> pairs = {};
    std::int64_t seen = 0, every = 1;
    void add(double expected, double got) {
      if (seen++ % every != 0) return;
      pairs.emplace_back(expected, got);
      if (pairs.size() < 2 * kMostValues) return;
      for (std::size_t i = 0; i < kMostValues; ++i) pairs[i] = pairs[2 * i];
      pairs.resize(kMostValues);
      every *= 2;
    }
  };

  void add(Mismatch element) {
    element.ratio = ratio_of(element.got, element.expected, element.bound);
    int& level = levels_[static_cast<std::size_t>(element.row * high_ / picture_.rows * wide_ +
                                                  element.column * wide_ / picture_.columns)];
    level = std::max(level, level_of(element.ratio));
    if (element.ratio == 0) {
      ++picture_.right;
    } else if (std::isinf(element.ratio)) {
      ++picture_.infinite;
    } else if (!picture_.exact) {
      const int octave = static_cast<int>(std::ceil(std::log2(element.ratio))) - kFirstOctave;
      ++picture_.counts[static_cast<std::size_t>(std::clamp(octave, 0, kOctaves - 1))];
    }
    (element.ratio > 1 ? wrong_ : right_).add(element.expected, element.got);
    if (element.ratio <= 1) return;
    Mismatch& worst = worst_of_row_.try_emplace(element.row, element).first->second;
    if (element.ratio > worst.ratio) worst = element;
  }

  void mark_rows(std::int64_t live, std::int64_t capacity) {
    picture_.live_rows = picture_.rows;
    const cases::TensorSpec& spec = stored_.spec();
    if (spec.shape.size() < 2 || spec.excerpt || spec.shape.front() <= 0) return;
    picture_.group_rows = picture_.rows / spec.shape.front();
    if (spec.shape.front() == capacity && live < capacity) {
      picture_.live_rows = live * picture_.group_rows;
    }
  }

  void take_worst() {
    for (auto& [row, element] : worst_of_row_) picture_.worst.push_back(element);
    std::ranges::sort(picture_.worst, [](const Mismatch& a, const Mismatch& b) {
      return std::pair(-a.ratio, a.row) < std::pair(-b.ratio, b.row);
    });
    if (picture_.worst.size() > kMostWorst) picture_.worst.resize(kMostWorst);
    for (Mismatch& element : picture_.worst) {
      element.coordinates = stored_.coordinates(element.row, element.column);
    }
  }

  static std::string values_of(const Sampled& sampled) {
    std::string text;
    const std::size_t count = std::min(sampled.pairs.size(), kMostValues);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [expected, got] = sampled.pairs[i * sampled.pairs.size() / count];
      text += fmt::format("{}{:.5g}:{:.5g}", i == 0 ? "" : " ", expected, got);
    }
    return text;
  }

  const Expectation& one_;
  const HostTensor& stored_;
  TensorPicture picture_;
  std::int64_t high_ = 0, wide_ = 0;
  std::vector<int> levels_;  // -1: nothing compared in the cell
  Sampled wrong_, right_;
  std::map<std::int64_t, Mismatch> worst_of_row_;
};

// Adds codes, integers or bits. False if the expectation has no values.
bool add_bits(const Expectation& one, PictureMaker& maker) {
  cases::TensorSet judged;
  judged.add(*one.stored);
  cases::RightValues right(judged);
  one.truth->put(*one.stored, one.promised, one.columns, right);
  const std::string& name = one.stored->spec().name;
  if (std::ranges::none_of(right.promised().at(name),
                           [](std::byte bits) { return bits != std::byte{0}; })) {
    return false;
  }
  const HostTensor& expected = right.values().at(name);
  maker.add_all([&](std::int64_t row, std::int64_t column) {
    return std::pair(expected.value(row, column), 0.0);
  });
  return true;
}

bool has_origin(const Expectation& one) { return one.stored->spec().origin != nullptr; }

}  // namespace

std::string_view picture_levels() { return kLevels; }

TensorPicture picture_of(const Expectation& one, std::int64_t live, std::int64_t capacity) {
  const reference::Estimate* const estimate = one.truth->estimate();
  PictureMaker maker(one, estimate == nullptr);
  if (one.stored->elements() == 0) return {};
  if (estimate != nullptr) {
    const std::int64_t columns = one.stored->columns();
    maker.add_all([&](std::int64_t row, std::int64_t column) {
      const std::int64_t i = row * columns + column;
      return std::pair(estimate->centre(i), estimate->bound(i));
    });
  } else if (has_origin(one) || !add_bits(one, maker)) {
    return {};
  }
  return maker.take(live, capacity);
}

std::vector<TensorPicture> failure_pictures(const cases::Case& which,
                                            const cases::RunOptions& options,
                                            const cases::CaseResult& result) {
  std::vector<TensorPicture> pictures;
  if (!result.evidence || result.failures.empty()) return pictures;
  const cases::CaseEvidence& evidence = *result.evidence;
  const std::vector<cases::TensorReport>& wrong = result.failures.front().reports;
  const auto problem = cases::make_problem(which, options, evidence.point.conditions.checked);
  const cases::Expectations expectations = problem->expect(
      evidence.step, evidence.tensors, cases::to_reference(evidence.declared), evidence.declared);
  for (const Expectation& one : expectations) {
    const std::string name = one.stored->spec().name + one.basis;
    const auto is_this = [&](const cases::TensorReport& report) { return report.tensor == name; };
    if (pictures.size() == kMostPictures || std::ranges::none_of(wrong, is_this)) continue;
    TensorPicture picture = picture_of(one, evidence.step.live, problem->capacity());
    if (!picture.cells.empty()) pictures.push_back(std::move(picture));
  }
  return pictures;
}

nlohmann::ordered_json to_json(const TensorPicture& picture) {
  nlohmann::ordered_json json{{"tensor", picture.tensor},
                              {"dtype", picture.dtype},
                              {"format", picture.format},
                              {"scales", picture.scales},
                              {"shape", picture.shape},
                              {"exact", picture.exact},
                              {"rows", picture.rows},
                              {"columns", picture.columns},
                              {"live_rows", picture.live_rows},
                              {"group_rows", picture.group_rows},
                              {"levels", kLevels},
                              {"bound_level", kBoundLevel},
                              {"cells", picture.cells},
                              {"right", picture.right},
                              {"infinite", picture.infinite},
                              {"unpromised", picture.unpromised}};
  if (!picture.exact) {
    json["first_octave"] = kFirstOctave;
    json["counts"] = fmt::format("{}", fmt::join(picture.counts, " "));
  }
  json["worst"] = nlohmann::ordered_json::array();
  for (const Mismatch& one : picture.worst) {
    json["worst"].push_back({{"at", one.coordinates},
                             {"expected", report_number(one.expected)},
                             {"got", report_number(one.got)},
                             {"bound", report_number(one.bound)},
                             {"ratio", report_number(one.ratio)}});
  }
  json["wrong_values"] = picture.wrong_values;
  json["right_values"] = picture.right_values;
  return json;
}

}  // namespace plumb::tools
