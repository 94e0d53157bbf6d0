// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/case_diagnosis.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "cases/drivers/composition.h"
#include "cases/tensors/sort_by.h"
#include "diagnosis/op_run.h"

namespace plumb::cases {

namespace {

constexpr double kMostNanoseconds = 3e8;  // of one launch on the simulator

bool is_compared(const TensorSpec& spec) {
  return spec.role == Role::output || spec.role == Role::scratch || spec.role == Role::state;
}

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
    consider("truncated", "results are cut off where they have to be rounded", truncated(),
             Closeness::bits);
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

  // Where a result is one unit nearer to zero than it should be.
  TensorSet truncated() const {
    TensorSet set = right_;
    for (HostTensor& result : set.all()) {
      if (!is_compared(result.spec()) || result.spec().dtype != Dtype::bf16) continue;
      const auto* observed = evidence_.tensors.at(result.spec().name).data<std::uint16_t>();
      auto* bits = result.data<std::uint16_t>();
      for (std::int64_t i = 0; i < result.extent(); ++i) {
        if (observed[i] + 1 == bits[i] && (bits[i] & 0x7fff) != 0) bits[i] = observed[i];
      }
    }
    return set;
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

  void name_the_best() {
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
