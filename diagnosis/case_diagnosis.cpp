// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/case_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cases/drivers/composition.h"
#include "cases/tensors/sort_by.h"
#include "diagnosis/lazy_hypotheses.h"
#include "diagnosis/op_run.h"
#include "diagnosis/rounding_hypotheses.h"

namespace plumb::cases {

namespace {

constexpr double kMostNanoseconds = 3e8;        // of one launch on the simulator
constexpr double kMostNanosecondsOfLazy = 2e7;  // some hundred launches
// Of hypotheses that many kernels nearly fit: rounding toward zero, a size that is off by a little.
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
    try_lazy_kernels();
    name_the_best();
    return diagnosis_;
  }

 private:
  void prepare() {
    if (builtin() == nullptr) {
      diagnosis_.not_tried = "plumb has no kernel of this op, and no faults of one";
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

  // A fault that is a wrong kernel of this op.
  void try_kernel(const DecodeFault& fault) {
    if (fault.broken != which_.op->name) return;
    try {
      const DecodeSetup with = fault.inject({.platform = platform_});
      if (!with.implementation) return;
      const auto* entry = device::find_entry(with.implementation(platform_, false), fault.broken);
      if (entry == nullptr) return;  // its fault is that it is not there
      ++diagnosis_.known;
      consider(fault.name, fault.stands_for, run_once(*problem_, *entry, platform_, evidence_));
    } catch (const std::exception&) {
      // It cannot have left what was observed.
    }
  }

  // Of each member of the C struct and each assumption: plumb's own kernel with it.
  void try_lazy_kernels() {
    // A sample of rows is another problem than the case that the lazy kernel is made for.
    if (problem_->cost() > kMostNanosecondsOfLazy || which_.op->table == nullptr) return;
    const auto whole =
        which_.op->make_problem(which_.row, device::open_device(platform_)->properties());
    // The process has one lazy kernel at a time (faults/lazy).
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const TensorSet tensors = whole->make_tensors();
    for (const HostTensor& tensor : tensors.all()) {
      const std::string& name = tensor.spec().name;
      if (!right_.contains(name) || right_.at(name).spec().shape != tensor.spec().shape) return;
    }
    for (const LazyKernel& kernel : lazy_hypotheses(which_, platform_)) {
      try {
        RunOptions options;
        options.platform = platform_;
        options = with_lazy_kernel(std::move(options), kernel, which_);
        const auto* entry =
            device::find_entry(options.implementation(platform_, false), which_.op->name);
        const TensorSet would = run_once(*problem_, *entry, platform_, evidence_);
        if (fits_each_tensor(would)) consider(kernel.name(), meaning_of(kernel), would);
      } catch (const std::exception&) {
        // It cannot have left what was observed.
      }
    }
  }

  void try_structures() {
    consider("not_applied", "the op hands its input on", not_applied());
    const bool in_place =
        std::any_of(evidence_.tensors.all().begin(), evidence_.tensors.all().end(),
                    [](const HostTensor& tensor) { return !tensor.spec().starts_as.empty(); });
    if (in_place) {
      consider("applied_twice", "the op runs on its own result",
               run_once(*problem_, *builtin(), platform_, evidence_, 2));
    }
    // Of bits, whoever ran it: another order of a sum changes few of them.
    if (const auto would = cut_off_results(*problem_, *builtin(), evidence_, right_)) {
      consider("truncated", "results are cut off where they have to be rounded", *would,
               Closeness::bits);
      if (all_.back().match.score() < kLeastScoreOfLoose) all_.pop_back();
    }
    if (const auto would = stored_as_fp16(evidence_, right_)) {
      consider("stored_as_fp16", "results are stored as fp16 where bf16 is wanted", *would);
    }
  }

  // Each result holds the input of its shape and type, if there is one.
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

  // A lazy kernel says what each tensor holds. Places that it leaves as they were before the launch
  // are not written, integers are exact.
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

  // True if `observed` has the bytes from before the launch wherever `left` has them.
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

  // What lies in between is a kernel's own affair.
  bool is_judged(const TensorSpec& spec) const {
    return is_compared(spec) && (closeness_ == Closeness::bits || spec.role != Role::scratch);
  }

  // The right bytes wherever the op promises nothing.
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

  // Nothing follows from values that are all alike: any kernel may leave NaN everywhere. Few have
  // to be met exactly.
  static bool is_enough(const Match& match) {
    if (match.is_alike()) return false;
    return match.is_few() ? match.wrong > 1 && match.is_exact() : match.score() >= kLeastScore;
  }

  // A lazy kernel adds nothing to a fault of the library that explains as much, nor to another one
  // of the same member: many multiples leave the same tail out.
  void drop_repeated() {
    const auto score = [](const Explanation& one) { return one.match.score(); };
    const auto member = [](const Explanation& one) {
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
  std::size_t library_ = 0;  // of all_, in front of the lazy kernels
  Diagnosis diagnosis_;
};

// Where values are wrong says nothing of what they are.
bool is_place(const std::string& pattern) {
  return pattern.starts_with("all rows from ") || pattern.starts_with("only columns from ");
}

// What the judge has recognised in the first failure.
std::string pattern_of(const CaseResult& result) {
  if (result.failures.empty()) return "";
  for (const TensorReport& report : result.failures.front().reports) {
    if (!report.pattern.empty() && !is_place(report.pattern)) return report.pattern;
  }
  return "";
}

// What leads to a failure in which no value is wrong.
std::string accident_of(const CaseResult& result) {
  static const std::map<std::string_view, std::string_view> kAccidents{
      {"guard_damaged",
       "a store outside its tensor: whole vectors over a tail, a row or column too many, an offset "
       "in too few bits"},
      {"gap_written",
       "a store between rows: whole vectors over a tail, or a width in place of a stride"},
      {"input_changed",
       "a store into an input: a wrong pointer, or an op in place that has to copy"},
      {"race",
       "two threads on one address, at least one of them writing: a barrier is missing, or "
       "threads pass different ones"},
      {"out_of_bounds",
       "an address outside all tensors: an index without its check, or an offset in too few bits"},
      {"use_after_free", "a use of memory after it was freed"},
      {"uninitialized_read",
       "a read of what nobody has written: shared memory or scratch in front of its first store (a "
       "barrier is missing), or a tail that is not filled"},
      {"divergent_barrier", "a barrier inside a branch that not all threads take"},
      {"exited_lane", "a wave operation behind an early return of some lanes"},
      {"deadlock", "a wait for threads that never arrive"},
      {"launch_limits", "a grid, block or shared memory that this platform does not have"},
      {"capture_unsupported", "a call that a graph cannot record: an allocation or a wait"},
      {"capture_invalid", "work on a stream that the capture does not reach"},
      {"held_by_graph", "a buffer that grows or is freed, with its old address in a graph"},
      {"timeout", "a loop that does not end, or a wait for a value that nobody writes"},
  };
  if (result.failures.empty()) return "";
  const auto found = kAccidents.find(result.failures.front().kind);
  return found == kAccidents.end() ? "" : std::string(found->second);
}

}  // namespace

Diagnosis diagnose_case(const Case& which, const CaseResult& result, const RunOptions& options,
                        const std::vector<DecodeFault>& library) {
  Diagnosis diagnosis;
  diagnosis.accident = accident_of(result);
  if (!diagnosis.accident.empty()) return diagnosis;
  const bool wrong_values =
      std::ranges::any_of(result.failures, [](const Failure& one) { return !one.reports.empty(); });
  if (!result.evidence && wrong_values) {
    diagnosis.not_tried = "no verdict on values that are small enough to keep";
  } else if (result.evidence) {
    diagnosis = CaseDiagnosis(which, *result.evidence, options).run(library);
  }
  diagnosis.pattern = pattern_of(result);
  return diagnosis;
}

}  // namespace plumb::cases
