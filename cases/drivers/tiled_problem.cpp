// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/tiled_problem.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cases/tensors/fill.h"
#include "cases/tensors/row_axis.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kRowsWorthAThread = 16;

enum TilingSalt : std::uint64_t { kPattern = 0x5e1ec7ed, kRepresentative };

// A group of rows that have the same inputs and the same bits in every output.
struct Alike {
  std::int64_t pattern = 0;          // row of the small problem whose inputs they have
  std::int64_t representative = -1;  // the row that is judged for the group
  // True if the group has the first, the last, or a row next to the live/dead boundary.
  bool edge = false;
  std::vector<std::int64_t> rows;
};

class TiledProblem final : public Problem {
 public:
  TiledProblem(MakeRows make, std::int64_t rows, std::int64_t sample)
      : make_(std::move(make)),
        rows_(rows),
        sample_(sample),
        // Two at least: one live and one padded.
        patterns_(std::max<std::int64_t>(2, (sample + 1) / 2)),
        large_(make_(rows_)),
        small_(make_(patterns_)) {
    const TensorSet small = small_->make_tensors();
    const TensorSet large = large_->make_tensors();
    for (const HostTensor& tensor : large.all()) {
      const TensorSpec& spec = tensor.spec();
      specs_.push_back(spec);
      const bool between = spec.role == Role::scratch || spec.role == Role::state;
      try {
        axes_.push_back(find_row_axis(spec, rows_, small.at(spec.name).spec(), patterns_));
      } catch (const std::logic_error&) {
        if (!between) throw;
        // No row dimension: a plan, or data that depends on a plan (see Problem::expect_whole).
        axes_.push_back(std::nullopt);
      }
    }
  }

  std::int64_t capacity() const override { return rows_; }
  TensorSet make_tensors() const override { return large_->make_tensors(); }
  std::unique_ptr<OpState> make_state(const DeviceTensors& tensors) const override {
    return large_->make_state(tensors);
  }
  plumb_numerics declared(const device::OpEntry& entry, const DeviceTensors& tensors,
                          OpState* state, device::Stream stream) const override {
    return large_->declared(entry, tensors, state, stream);
  }
  plumb_status launch(const device::OpEntry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override {
    return large_->launch(entry, tensors, state, stream);
  }
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return large_->promised_rows(step, spec);
  }
  RowMask promised_rows_by_inputs(const Step& step, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    return large_->promised_rows_by_inputs(step, tensors, spec);
  }
  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec& spec) const override {
    return large_->promised_columns(tensors, spec);
  }
  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override {
    return large_->canonical(tensors, spec, declared);
  }
  double cost() const override { return large_->cost(); }
  double checked_factor() const override { return large_->checked_factor(); }
  double reference_cost() const override {
    return large_->reference_cost() * static_cast<double>(sample_) / static_cast<double>(rows_);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const std::vector<std::int64_t> pattern = patterns_of_rows(step);
    std::vector<std::int64_t> first(static_cast<std::size_t>(patterns_), -1);
    for (std::int64_t row = rows_; row-- > 0;) first[pattern[row]] = row;
    TensorSet small = small_->make_tensors();
    for_each_input(tensors, small, [&](HostTensor& large, HostTensor& few, const auto& axis) {
      axis ? copy_rows(large, few, *axis, first) : void(few.bytes() = large.bytes());
    });
    Step few_step = step;
    few_step.live = live_of_few(step.live);
    small_->fill(few_step, small);
    for_each_input(tensors, small, [&](HostTensor& large, HostTensor& few, const auto& axis) {
      axis ? copy_rows(few, large, *axis, pattern) : void(large.bytes() = few.bytes());
    });
  }

  // Expectations of the rows that are judged, not of all rows.
  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    Expectations all = large_->expect_whole(step, tensors, numerics, declared);
    const std::vector<Alike> alike = find_alike(step, tensors, declared);
    for (const std::vector<const Alike*>& batch : batches_of(alike)) {
      append(expect_batch(step, tensors, batch, numerics, declared), all);
    }
    return all;
  }

  // Judges the chosen rows batch by batch: the estimates of all of them at once would not fit into
  // memory.
  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared,
                                  VerdictSeconds& seconds) const override {
    const std::vector<Alike> alike = find_alike(step, tensors, declared);
    Sample sample{.rows = rows_};
    const Expectations beside_rows = [&] {
      const Stopwatch watch(seconds.reference);
      return large_->expect_whole(step, tensors, numerics, declared);
    }();
    std::vector<TensorReport> reports = compare(beside_rows);
    const std::size_t whole = reports.size();
    std::map<std::string, std::vector<std::int64_t>> wrong;
    for (const std::vector<const Alike*>& batch : batches_of(alike)) {
      const Expectations expectations = [&] {
        const Stopwatch watch(seconds.reference);
        return expect_batch(step, tensors, batch, numerics, declared);
      }();
      const Stopwatch watch(seconds.judge);
      for (TensorReport& report : compare(expectations)) {
        const std::vector<std::int64_t> rows = wrong_rows(batch, report);
        auto& all = wrong[report.tensor];
        all.insert(all.end(), rows.begin(), rows.end());
        reports.push_back(std::move(report));
      }
      sample.judged += std::ssize(batch);
      for (const Alike* one : batch) sample.repeated += std::ssize(one->rows) - 1;
    }
    tell_sample(sample, std::move(wrong), whole, reports);
    return reports;
  }

 private:
  void for_each_input(TensorSet& large, TensorSet& small, const auto& visit) const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].role != Role::input) continue;
      visit(large.at(specs_[i].name), small.at(specs_[i].name), axes_[i]);
    }
  }

  // Live rows of the small problem: the same share as in the large one. If the large one has both
  // live and dead rows, so has the small one.
  std::int64_t live_of_few(std::int64_t live) const {
    if (live == 0 || live == rows_) return live == 0 ? 0 : patterns_;
    return std::clamp<std::int64_t>(patterns_ * live / rows_, 1, patterns_ - 1);
  }

  // Which row of the small problem each large row repeats. The order is random: a row that reads or
  // writes another row, at any fixed distance, then gets different inputs or outputs.
  std::vector<std::int64_t> patterns_of_rows(const Step& step) const {
    const std::int64_t live = live_of_few(step.live);
    const std::uint64_t seed = mix(step.seed, kPattern);
    std::vector<std::int64_t> patterns;
    for (std::int64_t row = 0; row < rows_; ++row) {
      patterns.push_back(row < step.live ? integer(seed, row, 0, live - 1)
                                         : integer(seed, row, live, patterns_ - 1));
    }
    return patterns;
  }

  // Hashes what each row's promised part of a tensor holds into the row's digest.
  void digest(const Step& step, const TensorSet& tensors, const plumb_numerics& declared,
              std::size_t index, std::vector<std::uint64_t>& digests) const {
    const TensorSpec& spec = specs_[index];
    const RowAxis axis = *axes_[index];
    const std::optional<HostTensor> canonical = large_->canonical(tensors, spec, declared);
    const HostTensor& tensor = canonical ? *canonical : tensors.at(spec.name);
    const RowMask promised = large_->promised_rows_by_inputs(step, tensors, spec);
    const ColumnRanges columns = large_->promised_columns(tensors, spec);
    const std::size_t size = size_of(spec.dtype);
    const RowPieces pieces(spec, axis);
    // With one number per problem row, a tensor row spans several problem rows: hash whole pieces.
    const bool whole =
        (promised.empty() && columns.empty()) || axis.dimension + 1 == spec.shape.size();
    const auto add = [&](std::int64_t row, std::int64_t offset, std::int64_t count) {
      digests[row] =
          XXH3_64bits_withSeed(tensor.bytes().data() + static_cast<std::size_t>(offset) * size,
                               static_cast<std::size_t>(count) * size, digests[row]);
    };
    reference::parallel_for(rows_, kRowsWorthAThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        for (std::int64_t i = 0; whole && i < pieces.count(); ++i) {
          add(row, pieces.offset(row, i), pieces.length());
        }
        if (whole) continue;
        for (const std::int64_t r : tensor_rows(spec, axis, row)) {
          if (!promised.empty() && !promised[r]) continue;
          const ColumnRange range = columns_of(columns, tensor, r);
          add(row, tensor.row_offset(r) + range.begin, range.end - range.begin);
        }
      }
    });
  }

  std::vector<Alike> find_alike(const Step& step, const TensorSet& tensors,
                                const plumb_numerics& declared) const {
    const bool partials = declared.stores_partials != 0;
    const std::vector<std::int64_t> pattern = patterns_of_rows(step);
    std::vector<std::uint64_t> digests(static_cast<std::size_t>(rows_));
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const bool seen =
          specs_[i].role == Role::output || (specs_[i].role == Role::scratch && partials);
      if (seen && axes_[i]) digest(step, tensors, declared, i, digests);
    }
    std::map<std::pair<std::int64_t, std::uint64_t>, std::size_t> known;
    std::vector<Alike> alike;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto [place, added] = known.try_emplace({pattern[row], digests[row]}, alike.size());
      if (added) alike.push_back({.pattern = pattern[row], .rows = {}});
      alike[place->second].rows.push_back(row);
    }
    for (Alike& one : alike) choose_representative(step, one);
    return alike;
  }

  void choose_representative(const Step& step, Alike& one) const {
    for (const std::int64_t edge : {std::int64_t{0}, rows_ - 1, step.live - 1, step.live}) {
      if (!std::binary_search(one.rows.begin(), one.rows.end(), edge)) continue;
      one.representative = edge;
      one.edge = true;
      return;
    }
    const auto last = std::ssize(one.rows) - 1;
    one.representative =
        one.rows[integer(mix(step.seed, kRepresentative), one.rows.front(), 0, last)];
  }

  // The groups to judge, at most `sample_` in all. Within one batch no two groups have the same
  // inputs: rows with equal inputs share their errors, and the bias test would add these up.
  std::vector<std::vector<const Alike*>> batches_of(const std::vector<Alike>& alike) const {
    std::vector<std::vector<const Alike*>> of_pattern(static_cast<std::size_t>(patterns_));
    for (const Alike& one : alike) of_pattern[one.pattern].push_back(&one);
    for (auto& variants : of_pattern) {
      std::sort(variants.begin(), variants.end(), [](const Alike* a, const Alike* b) {
        return std::pair(!a->edge, a->rows.front()) < std::pair(!b->edge, b->rows.front());
      });
    }
    std::vector<std::vector<const Alike*>> batches;
    for (std::int64_t left = sample_; left > 0;) {
      const std::size_t turn = batches.size();
      std::vector<const Alike*> batch;
      for (const auto& variants : of_pattern) {
        if (turn < variants.size() && std::ssize(batch) < left) batch.push_back(variants[turn]);
      }
      if (batch.empty()) break;
      std::sort(batch.begin(), batch.end(), [](const Alike* a, const Alike* b) {
        return a->representative < b->representative;
      });
      left -= std::ssize(batch);
      batches.push_back(std::move(batch));
    }
    return batches;
  }

  // Cuts the given rows out of the tensors, in the layout of the problem `few`.
  TensorSet excerpt_of(const TensorSet& tensors, const Problem& few,
                       const std::vector<std::int64_t>& rows) const {
    TensorSet excerpt;
    const TensorSet layout = few.make_tensors();
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      TensorSpec spec = layout.at(specs_[i].name).spec();
      const HostTensor& whole = tensors.at(spec.name);
      if (!axes_[i]) {
        spec.clues = whole.spec().clues;
        HostTensor& shared = excerpt.add(std::move(spec));
        if (shared.bytes().size() == whole.bytes().size()) shared.bytes() = whole.bytes();
        continue;
      }
      const RowAxis axis = *axes_[i];
      copy_rows(whole, excerpt.add(excerpt_spec(whole.spec(), std::move(spec), axis, rows)), axis,
                rows);
    }
    return excerpt;
  }

  Expectations expect_batch(const Step& step, const TensorSet& tensors,
                            const std::vector<const Alike*>& batch,
                            const reference::Numerics& numerics,
                            const plumb_numerics& declared) const {
    std::vector<std::int64_t> rows;
    Step few_step = step;
    few_step.live = 0;
    for (const Alike* one : batch) {
      rows.push_back(one->representative);
      few_step.live += one->representative < step.live;
    }
    const std::unique_ptr<Problem> few = make_(std::ssize(rows));
    return few->expect_sample(few_step, excerpt_of(tensors, *few, rows), numerics, declared);
  }

  // Index of the tensor that a report is about. "out (end to end)" is about out.
  std::optional<std::size_t> tensor_of(const TensorReport& report) const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (report.tensor == specs_[i].name || report.tensor.starts_with(specs_[i].name + " ")) {
        return i;
      }
    }
    return std::nullopt;
  }

  // All rows of the large problem that are wrong: the judged rows, and the rows of their groups.
  std::vector<std::int64_t> wrong_rows(const std::vector<const Alike*>& batch,
                                       const TensorReport& report) const {
    const auto index = tensor_of(report);
    if (report.wrong_rows.empty() || !index || !axes_[*index]) return {};
    const TensorSpec& spec = specs_[*index];
    if (axes_[*index]->dimension + 1 == spec.shape.size()) return {};
    std::set<std::int64_t> judged;
    for (const std::int64_t r : report.wrong_rows) {
      judged.insert(problem_row(spec, *axes_[*index], r));
    }
    std::vector<std::int64_t> rows;
    for (const Alike* one : batch) {
      if (!judged.contains(one->representative)) continue;
      rows.insert(rows.end(), one->rows.begin(), one->rows.end());
    }
    return rows;
  }

  // Adds to the first failed report of each tensor which rows are wrong, judged or not. The first
  // report of each tensor gets the counts of the sample, and the last failed report a line about
  // them.
  static void tell_sample(const Sample& sample,
                          std::map<std::string, std::vector<std::int64_t>> wrong, std::size_t whole,
                          std::vector<TensorReport>& reports) {
    std::set<std::string> told;
    for (std::size_t i = whole; i < reports.size(); ++i) {
      TensorReport& report = reports[i];
      if (told.insert(report.tensor).second) report.sample = sample;
      std::vector<std::int64_t>& rows = wrong[report.tensor];
      if (rows.empty() || report.passed()) continue;
      std::sort(rows.begin(), rows.end());
      report.failures.insert(
          report.failures.begin(),
          fmt::format(
              "{}: with the rows that have the same inputs and bits as a wrong row, {} {} wrong",
              report.tensor, rows_of(rows, sample.rows), rows.size() == 1 ? "is" : "are"));
      rows.clear();
    }
    const auto last = std::find_if(reports.rbegin(), reports.rend(),
                                   [](const TensorReport& report) { return !report.passed(); });
    if (last != reports.rend()) last->failures.push_back(text_of(sample));
  }

  MakeRows make_;
  std::int64_t rows_, sample_, patterns_;
  std::unique_ptr<Problem> large_, small_;
  std::vector<TensorSpec> specs_;  // tensors of the large problem
  std::vector<std::optional<RowAxis>> axes_;
};

}  // namespace

std::unique_ptr<Problem> make_tiled_problem(const MakeRows& make, std::int64_t rows,
                                            std::int64_t sample) {
  return std::make_unique<TiledProblem>(make, rows, sample);
}

}  // namespace plumb::cases
