// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/case_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "cases/drivers/composition.h"
#include "cases/tables/contract.h"
#include "cases/tensors/sort_by.h"
#include "diagnosis/accidents.h"
#include "diagnosis/lazy_hypotheses.h"
#include "diagnosis/misread_inputs.h"
#include "diagnosis/op_run.h"
#include "diagnosis/rounding_hypotheses.h"

namespace plumb::cases {

namespace {

// Limit for the estimated time of one simulated launch (Problem::cost). A case above it gets no
// diagnosis.
constexpr double kMostNanoseconds = 3e8;
// The limit for lazy kernels (plumb's own kernel with one added assumption) is lower, because they
// need some hundred launches. Launches with the simulator's checks are slower, and fewer.
constexpr double kMostNanosecondsOfLazy = 2e7, kMostNanosecondsOfChecked = 1e8;
// Least scores (Match::score) of hypotheses that nearly fit the results of many wrong kernels:
// kLeastScoreOfLoose for truncated results and for all tensors of a lazy kernel together,
// kLeastScoreOfTensor for each tensor of a lazy kernel.
constexpr double kLeastScoreOfLoose = 0.95, kLeastScoreOfTensor = 0.9;

class CaseDiagnosis {
 public:
  CaseDiagnosis(const Case& which, const CaseEvidence& evidence, const RunOptions& options)
      : which_(which),
        evidence_(evidence),
        platform_(simulated_like(options.platform)),
        closeness_(options.foreign ? Closeness::ulps : closeness_to_simulator(options.platform)) {}

  Diagnosis run(const std::vector<DecodeFault>& library) {
    try {
      prepare();
    } catch (const std::exception& error) {
      diagnosis_.not_tried = error.what();
      return diagnosis_;
    }
    if (!diagnosis_.not_tried.empty()) return diagnosis_;
    for (const DecodeFault& fault : library) try_kernel(fault);
    try_structures();
    library_ = all_.size();
    // A fault of the library that predicts each value leaves nothing to explain.
    const auto is_whole = [](const Explanation& one) {
      return is_enough(one.match) && one.match.is_exact();
    };
    if (std::ranges::none_of(all_, is_whole)) {
      try_lazy_kernels();
      try_misread_inputs();
    }
    name_the_best();
    return diagnosis_;
  }

 private:
  void prepare() {
    if (builtin() == nullptr) {
      diagnosis_.not_tried = "plumb has no kernel of this op, and no fault of such a kernel";
      return;
    }
    RunOptions plain;
    plain.platform = platform_;
    problem_ = make_problem(which_, plain, false);
    if (problem_->cost() > kMostNanoseconds) {
      diagnosis_.not_tried = "the case is too large for the simulator";
      return;
    }
    right_ = run_once(*problem_, *builtin(), platform_, evidence_);
  }

  const device::OpEntry* builtin() const {
    return device::find_entry(device::builtin_implementation(platform_), which_.op->name);
  }

  // Tries a fault of the library if it is a wrong kernel of this op.
  void try_kernel(const DecodeFault& fault) {
    if (fault.broken != which_.op->name) return;
    try {
      const DecodeSetup with = fault.inject({.platform = platform_});
      if (!with.implementation) return;
      const auto* entry = device::find_entry(with.implementation(platform_, false), fault.broken);
      if (entry == nullptr) return;  // the fault removes the op's kernel
      ++diagnosis_.known;
      consider(fault.name, fault.stands_for, run_once(*problem_, *entry, platform_, evidence_));
    } catch (const std::exception&) {
      // A kernel that throws cannot have computed the observed values.
    }
  }

  // Whether all launches of such hypotheses take seconds.
  bool is_quick(bool checked) const {
    const double cost = problem_->cost();
    if (cost > kMostNanosecondsOfLazy) return false;
    return !checked || cost * problem_->checked_factor() <= kMostNanosecondsOfChecked;
  }

  // Tries plumb's own kernel with each assumption (lazy kernel) about each member of the C struct.
  void try_lazy_kernels() {
    // Lazy kernels are made for the whole case. If only a sample of rows was run, the shapes differ
    // and no lazy kernel is tried.
    if (!is_quick(false) || which_.op->table == nullptr) return;
    const auto whole =
        which_.op->make_problem(which_.row, device::open_device(platform_)->properties());
    // Only one lazy kernel can be active in a process (faults/lazy).
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const TensorSet tensors = whole->make_tensors();
    for (const HostTensor& tensor : tensors.all()) {
      const std::string& name = tensor.spec().name;
      if (!right_.contains(name) || right_.at(name).spec().shape != tensor.spec().shape) return;
    }
    for (const LazyKernel& kernel : lazy_hypotheses(which_, platform_)) {
      if (!is_quick(may_leave(kernel))) continue;
      try_whole(kernel.name(), meaning_of(kernel), [&] {
        RunOptions options;
        options.platform = platform_;
        options = with_lazy_kernel(std::move(options), kernel, which_);
        const bool checked = may_leave(kernel);
        const auto* entry =
            device::find_entry(options.implementation(platform_, checked), which_.op->name);
        return run_once(*problem_, *entry, platform_, evidence_, {.checked = checked});
      });
    }
  }

  // Tries plumb's own kernel with each wrong way to read an input.
  void try_misread_inputs() {
    if (!is_quick(false)) return;
    for (const HostTensor& input : evidence_.tensors.all()) {
      for (const MisreadInput& misread : misread_inputs(input)) {
        if (!is_quick(misread.may_leave)) continue;
        const std::string name = fmt::format("{}.{}", which_.op->name, misread.name);
        try_whole(name, misread.meaning, [&] { return run_with(misread); });
      }
    }
  }

  TensorSet run_with(const MisreadInput& misread) const {
    CaseEvidence evidence = evidence_;
    evidence.tensors.at(misread.seen.spec().name) = misread.seen;
    const bool checked = misread.may_leave;
    const device::Implementation& own = checked ? device::checked_implementation(platform_)
                                                : device::builtin_implementation(platform_);
    const auto* entry = device::find_entry(own, which_.op->name);
    return run_once(*problem_, *entry, platform_, evidence, {.checked = checked});
  }

  // Considers the results of `run` if they fit every tensor.
  void try_whole(const std::string& name, const std::string& meaning,
                 const std::function<TensorSet()>& run) {
    try {
      const TensorSet would = run();
      if (fits_each_tensor(would)) consider(name, meaning, would);
    } catch (const std::exception&) {
      // A kernel that throws cannot have computed the observed values.
    }
  }

  void try_structures() {
    consider("not_applied", "the op returns its input", not_applied());
    const bool in_place =
        std::any_of(evidence_.tensors.all().begin(), evidence_.tensors.all().end(),
                    [](const HostTensor& tensor) { return !tensor.spec().starts_as.empty(); });
    if (in_place) {
      consider("applied_twice", "the op runs a second time, on its own result",
               run_once(*problem_, *builtin(), platform_, evidence_, {.times = 2}));
    }
    // Truncation is compared bit for bit on every platform, because another order of a sum changes
    // few bits of bf16 results.
    if (const auto would = cut_off_results(*problem_, *builtin(), evidence_, right_)) {
      consider("truncated", "results are truncated instead of rounded", *would, Closeness::bits);
      if (all_.back().match.score() < kLeastScoreOfLoose) all_.pop_back();
    }
    if (const auto would = stored_as_fp16(evidence_, right_)) {
      consider("stored_as_fp16", "results are stored as fp16 instead of bf16", *would);
    }
  }

  // Hypothesis: each result is a copy of the input with its shape and dtype, if there is one.
  TensorSet not_applied() const {
    TensorSet set = right_;
    for (HostTensor& result : set.all()) {
      if (!is_compared(result.spec())) continue;
      for (const HostTensor& input : evidence_.tensors.all()) {
        const TensorSpec& spec = input.spec();
        if (spec.role != Role::input || spec.dtype != result.spec().dtype ||
            spec.shape != result.spec().shape || input.bytes().size() != result.bytes().size()) {
          continue;
        }
        result.bytes() = input.bytes();
        break;
      }
    }
    return set;
  }

  // True if the results `would` of a lazy kernel fit every observed tensor. Elements that the lazy
  // kernel does not write must be unwritten in the observed tensor too, and integers must be equal.
  bool fits_each_tensor(const TensorSet& would) const {
    Match all;
    for (const HostTensor& right : right_.all()) {
      const TensorSpec& spec = right.spec();
      if (!is_judged(spec)) continue;
      const HostTensor observed = promised(evidence_.tensors.at(spec.name), right);
      const HostTensor left = promised(would.at(spec.name), right);
      if (spec.starts_as.empty() && !leaves_the_same(observed, left)) return false;
      const Match one = match(observed, right, left, closeness_);
      const bool integers = spec.dtype == Dtype::i32 || spec.dtype == Dtype::i64;
      if (integers && !one.is_exact()) return false;
      if (one.wrong + one.invented > 0 && one.score() < kLeastScoreOfTensor) return false;
      all += one;
    }
    return all.score() >= kLeastScoreOfLoose;
  }

  // True if each element that the hypothesis (`left`) did not write is unwritten in `observed` too:
  // it has the poison, the byte that outputs hold before the launch.
  bool leaves_the_same(const HostTensor& observed, const HostTensor& left) const {
    const auto before = static_cast<std::byte>(evidence_.poison);
    const std::size_t size = size_of(left.spec().dtype);
    const auto untouched = [&](const HostTensor& tensor, std::size_t at) {
      const std::byte* element = tensor.bytes().data() + at * size;
      return std::all_of(element, element + size, [&](std::byte one) { return one == before; });
    };
    for (std::int64_t i = 0; i < left.extent(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (untouched(left, at) && !untouched(observed, at)) return false;
    }
    return true;
  }

  void consider(std::string name, std::string stands_for, const TensorSet& would) {
    consider(std::move(name), std::move(stands_for), would, closeness_);
  }
  void consider(std::string name, std::string stands_for, const TensorSet& would,
                Closeness closeness) {
    Explanation one{std::move(name), std::move(stands_for), {}};
    for (const HostTensor& tensor : right_.all()) {
      if (!is_judged(tensor.spec())) continue;
      one.match += match(promised(evidence_.tensors.at(tensor.spec().name), tensor), tensor,
                         promised(would.at(tensor.spec().name), tensor), closeness);
    }
    all_.push_back(std::move(one));
  }

  // Scratch is compared bit for bit or not at all, because kernels may differ in their
  // intermediates.
  bool is_judged(const TensorSpec& spec) const {
    return is_compared(spec) && (closeness_ == Closeness::bits || spec.role != Role::scratch);
  }

  // Returns `tensor` with the right bytes wherever the op promises nothing, so that these do not
  // count.
  HostTensor promised(HostTensor tensor, const HostTensor& right) const {
    const RowMask rows =
        problem_->promised_rows_by_inputs(evidence_.step, evidence_.tensors, tensor.spec());
    const ColumnRanges columns = problem_->promised_columns(evidence_.tensors, tensor.spec());
    const std::size_t size = size_of(tensor.spec().dtype);
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      const ColumnRange range =
          is_promised(rows, row) ? columns_of(columns, tensor, row) : ColumnRange{0, 0};
      const auto keep_right = [&](std::int64_t begin, std::int64_t end) {
        const auto at = static_cast<std::size_t>(tensor.row_offset(row) + begin) * size;
        std::memcpy(tensor.bytes().data() + at, right.bytes().data() + at,
                    static_cast<std::size_t>(end - begin) * size);
      };
      keep_right(0, range.begin);
      keep_right(range.end, tensor.columns());
    }
    return tensor;
  }

  // True if the match may name its hypothesis. Wrong values that are all equal prove nothing: any
  // kernel may leave NaN everywhere. If few values are wrong, the match must be exact.
  static bool is_enough(const Match& match) {
    if (match.is_alike()) return false;
    return match.is_few() ? match.wrong > 1 && match.is_exact() : match.score() >= kLeastScore;
  }

  // Drops a lazy kernel if a fault of the library, or an earlier lazy kernel of the same member of
  // the C struct, explains as much. Lazy kernels that round a size down to different multiples
  // often leave out the same tail. An eps that is ignored and one outside a square root are two
  // causes, although the same values follow where eps is small.
  void drop_repeated() {
    const auto score = [](const Explanation& one) { return one.match.score(); };
    const auto member = [](const Explanation& one) {
      if (one.name.ends_with(name_of(LazyKind::squared))) return one.name;
      return one.name.substr(0, one.name.find('.', one.name.find('.') + 1));
    };
    for (std::size_t i = library_; i < all_.size();) {
      const auto before = all_.begin() + static_cast<std::ptrdiff_t>(i);
      const bool repeated = std::any_of(all_.begin(), before, [&](const Explanation& one) {
        const bool of_library = &one < all_.data() + library_;
        return score(one) >= score(*before) && (of_library || member(one) == member(*before)) &&
               score(one) > 0;
      });
      i += !repeated;
      if (repeated) all_.erase(before);
    }
  }

  void name_the_best() {
    drop_repeated();
    sort_by(all_, [](const Explanation& one) { return one.match.score(); }, std::greater<>());
    for (const Explanation& one : all_) {
      const double score = one.match.score();
      if (is_enough(one.match) && score >= all_.front().match.score() - kScoreMargin) {
        diagnosis_.named.push_back(one);
        continue;
      }
      if (one.match.explained > 0) diagnosis_.next = one;
      break;
    }
  }

  const Case& which_;
  const CaseEvidence& evidence_;
  const std::string platform_;
  const Closeness closeness_;
  std::unique_ptr<Problem> problem_;
  TensorSet right_;
  std::vector<Explanation> all_;
  std::size_t library_ = 0;  // number of entries of all_ before the lazy kernels
  Diagnosis diagnosis_;
};

// True for patterns that say where values are wrong and not what they are.
bool is_place(const std::string& pattern) {
  return pattern.starts_with("all rows from ") || pattern.starts_with("only columns from ");
}

// Pattern that the judge recognised in the first failure.
std::string pattern_of(const CaseResult& result) {
  if (result.failures.empty()) return "";
  for (const TensorReport& report : result.failures.front().reports) {
    if (!report.pattern.empty() && !is_place(report.pattern)) return report.pattern;
  }
  return "";
}

}  // namespace

Diagnosis diagnose_case(const Case& any, const CaseResult& result, const RunOptions& options,
                        const std::vector<DecodeFault>& library) {
  const Case which = under_contract(options.implementation(options.platform, false), any);
  Diagnosis diagnosis;
  diagnosis.accident = accident_of(result);
  if (!diagnosis.accident.empty()) return diagnosis;
  const bool wrong_values =
      std::ranges::any_of(result.failures, [](const Failure& one) { return !one.reports.empty(); });
  if (!result.evidence && wrong_values) {
    diagnosis.not_tried = "the tensors of each wrong verdict are too large to keep";
  } else if (result.evidence) {
    diagnosis = CaseDiagnosis(which, *result.evidence, options).run(library);
  }
  diagnosis.pattern = pattern_of(result);
  return diagnosis;
}

}  // namespace plumb::cases
