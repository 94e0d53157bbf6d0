// SPDX-License-Identifier: Apache-2.0
//
// Cases of commit_online_states. Before each launch all states hold random bytes, so that a copy of
// numbers instead of bits may show too.
#include "reference/compressor/commit_online_states.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/compressor/online_banks.h"
#include "cases/tables/table_problem.h"

namespace plumb::cases {

namespace commit_online_states_cases {

using P = plumb_commit_online_states_params;
using reference::kOnlineGroup;

enum CommitSalt : std::uint64_t { kPending = 71, kAccepted, kCommitStates, kOtherPending };

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  add_online_banks(t, requests, head_dim);
  t.input("pending_seq_lens", &P::pending_seq_lens, {t.value("bank_rows", &P::bank_rows), 1},
          "per row of bank 0; negative: none");
  return requests;
}

class CommitStatesProblem final : public TableProblem<P> {
 public:
  CommitStatesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        rows_(p_.requests, p_.bank_rows, row.integer("skipped_percent")) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_bytes(tensors.at("states_before"), mix(step.seed, kCommitStates));
    rows_.fill(step, tensors.at("request_rows"));
    const auto* rows = tensors.at("request_rows").data<std::int64_t>();
    auto* const lengths = tensors.at("seq_lens").data<std::int32_t>();
    auto* const pending = tensors.at("pending_seq_lens").data<std::int64_t>();
    // Rows of other requests may be pending too.
    for (std::int64_t row = 0; row < p_.bank_rows; ++row) {
      const auto place = static_cast<std::uint64_t>(row);
      pending[row] = integer(mix(step.seed, kOtherPending), place, -1, 500);
    }
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const bool dead = request >= step.live;
      const CommitLengths of = dead ? CommitLengths{0, 1} : lengths_of(step, request);
      lengths[request] = static_cast<std::int32_t>(of.now);
      if (rows[request] >= 0 && rows[request] < p_.bank_rows) pending[rows[request]] = of.pending;
    }
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const HostTensor& before = tensors.at("states_before");
    const auto* rows = tensors.at("request_rows").data<std::int64_t>();
    const auto* lengths = tensors.at("seq_lens").data<std::int32_t>();
    const auto* pending = tensors.at("pending_seq_lens").data<std::int64_t>();
    HostTensor right = before;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const std::int64_t row = rows[request];
      if (row < 0 || row >= p_.bank_rows) continue;
      const std::int64_t bank =
          reference::committed_bank(pending[row], lengths[request], p_.verify_tokens);
      const auto* from = before.row<std::uint32_t>(row + bank * p_.bank_rows);
      std::copy_n(from, before.columns(), right.row<std::uint32_t>(row));
    }
    return {expect_bits(tensors.at("states"), std::move(right), {}, "differs from the right bank")};
  }

  double cost() const override {
    return 10.0 * static_cast<double>(p_.requests * (3 * p_.head_dim + 64));
  }
  double checked_factor() const override { return 15; }
  double moved_bytes(const TensorSet& tensors) const override {
    const auto states = static_cast<double>(tensors.at("states").bytes().size());
    return Problem::moved_bytes(tensors) - 2 * states +
           24.0 * static_cast<double>(p_.requests * p_.head_dim);
  }

 private:
  struct CommitLengths {
    std::int64_t pending = 0, now = 0;
  };

  CommitLengths lengths_of(const Step& step, std::int64_t request) const {
    const auto place = static_cast<std::uint64_t>(request);
    const std::uint64_t seed = mix(step.seed, kAccepted);
    const std::int64_t n = p_.verify_tokens;
    if (step.fill == Fill::exact) return {5 * request, 5 * request + 1 + request % n};
    const std::int64_t pending = integer(mix(step.seed, kPending), place, 0, 1000);
    if (step.fill == Fill::real) return {pending, pending + integer(seed, place, 0, n)};
    // Accepted: none, all, more than there are, fewer than none. The accepted tokens end a group or
    // pass its end. Nothing is pending, or the length is missing.
    const std::int64_t end = kOnlineGroup * (1 + pending % 3);
    const CommitLengths edges[] = {
        {end - n, end},         {pending, pending},         {end - n, end + 3},
        {end - 1, end - 1 + n}, {pending, pending + n + 1}, {-1, n},
        {end - n - 1, end - 1}, {end + 1, end - 2},         {pending, -1},
        {end, end + 1}};
    return edges[(random_bits(seed, 0) + place) % std::size(edges)];
  }

  OnlineBankRows rows_;
};

}  // namespace commit_online_states_cases

OpDefinition define_commit_online_states() {
  using namespace commit_online_states_cases;
  OpDefinition op;
  op.name = "commit_online_states";
  op.summary = "SGLang's C128A: states of accepted prefixes become the committed ones";
  op.parameters = online_bank_parameters();
  op.parameters.push_back({"head_dim", 64, 1, 65536, "channels"});
  op.parameters.push_back(kOutGap);
  op.make_problem = make_problem_of<CommitStatesProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
