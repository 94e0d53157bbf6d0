// SPDX-License-Identifier: Apache-2.0
//
// Cases of online_compress_prefix. Rows of a batch are requests with verify_tokens tokens each.
// States that are not read hold random bytes, among them committed states of requests whose first
// token begins a group.
#include <algorithm>
#include <utility>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/compressor/online_banks.h"
#include "cases/tables/table_problem.h"

namespace plumb::cases {

namespace online_compress_prefix_cases {

using P = plumb_online_compress_prefix_params;
using reference::kOnlineGroup;
using reference::OnlineSegment;

enum PrefixSalt : std::uint64_t { kPrefixLengths = 71, kPrefixStates };

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  add_online_banks(t, requests, head_dim);
  add_online_tokens(t, requests * t.value("verify_tokens", &P::verify_tokens), head_dim);
  return requests;
}

class OnlinePrefixProblem final : public TableProblem<P> {
 public:
  OnlinePrefixProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        rows_(p_.requests, p_.bank_rows, row.integer("skipped_percent")),
        context_(row.integer("context")) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    const OnlineInputs inputs(step, p_.head_dim);
    inputs.fill_ape(tensors.at("ape"));
    fill_bytes(tensors.at("states_before"), mix(step.seed, kPrefixStates));
    rows_.fill(step, tensors.at("request_rows"));
    const auto* rows = tensors.at("request_rows").data<std::int64_t>();
    auto* const lengths = tensors.at("seq_lens").data<std::int32_t>();
    for (std::int64_t number = 0; number < p_.requests; ++number) {
      const std::int64_t length = number < step.live ? length_of(step, number) : -1;
      lengths[number] = static_cast<std::int32_t>(length);
      if (number >= step.live) continue;
      const OnlineRequest request{number, std::max<std::int64_t>(length, 0),
                                  inputs.is_reset(number)};
      inputs.fill_tokens(request, number * p_.verify_tokens, p_.verify_tokens, tensors);
      if (is_skipped(length, rows[number]) || length % kOnlineGroup == 0) continue;
      inputs.write_state(request, tensors.at("ape"),
                         tensors.at("states_before").row<float>(rows[number]));
    }
    for (const char* const name : {"kv", "score"}) {
      fill_dead(tensors.at(name), step.live * p_.verify_tokens, p_.requests * p_.verify_tokens,
                step.dead_rows);
    }
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const auto* rows = tensors.at("request_rows").data<std::int64_t>();
    const auto* lengths = tensors.at("seq_lens").data<std::int32_t>();
    std::vector<OnlineSegment> stored_tokens;
    std::vector<std::int64_t> written;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const std::int64_t length = lengths[request], n = p_.verify_tokens;
      const bool skipped = is_skipped(length, rows[request]);
      for (std::int64_t j = 1; j <= n; ++j) {
        const bool is_stored = !skipped && (length + j) % kOnlineGroup != 0;
        written.push_back(is_stored ? rows[request] + j * p_.bank_rows : -1);
      }
      if (skipped) continue;
      const auto* const state = tensors.at("states_before").row<float>(rows[request]);
      for (OnlineSegment segment : reference::online_segments(request * n, n, length, state)) {
        if (segment.closes()) --segment.tokens;
        if (segment.tokens > 0) stored_tokens.push_back(segment);
      }
    }
    const reference::OnlineStates states =
        online_states(online_tokens(tensors, p_.head_dim), stored_tokens,
                      reference::StateOf::every_token, numerics);
    const StoredOnlineStates stored(tensors, p_.head_dim, std::move(written));
    Expectations all = stored.expect(states, step.fill != Fill::real, p_.verify_tokens);
    all.push_back(stored.expect_rest());
    return all;
  }

  double cost() const override {
    return 25.0 * static_cast<double>(p_.requests * (p_.verify_tokens + 1) * p_.head_dim);
  }
  double reference_cost() const override {
    return online_reference_cost(p_.requests * p_.verify_tokens, p_.head_dim);
  }
  double checked_factor() const override { return 20; }

 private:
  bool is_skipped(std::int64_t length, std::int64_t row) const {
    return length < 0 || row < 0 || row >= p_.bank_rows;
  }

  // Sequence in front of the step. Adversarial: the last positions of a group, the first ones, and
  // no sequence.
  std::int64_t length_of(const Step& step, std::int64_t request) const {
    const std::uint64_t seed = mix(step.seed, kPrefixLengths);
    const auto place = static_cast<std::uint64_t>(request);
    if (step.fill == Fill::exact) return std::max<std::int64_t>(context_ - 3 * request, 0);
    if (step.fill == Fill::real) return integer(seed, place, 0, context_);
    const std::int64_t n = p_.verify_tokens;
    const std::int64_t edges[] = {kOnlineGroup - n,     kOnlineGroup - 1,     0,
                                  kOnlineGroup,         kOnlineGroup - n - 1, -1,
                                  2 * kOnlineGroup - 2, kOnlineGroup + 1,     1};
    return std::min(edges[(random_bits(seed, 0) + place) % std::size(edges)], context_);
  }

  OnlineBankRows rows_;
  std::int64_t context_;
};

}  // namespace online_compress_prefix_cases

OpDefinition define_online_compress_prefix() {
  using namespace online_compress_prefix_cases;
  OpDefinition op;
  op.name = "online_compress_prefix";
  op.summary = "SGLang's C128A: the state that each accepted prefix of a verification leaves";
  op.parameters = online_bank_parameters();
  op.parameters.push_back({"context", 600, 0, 1 << 24, "longest sequence in front of the step"});
  for (const Parameter& parameter : online_token_parameters()) op.parameters.push_back(parameter);
  op.make_problem = make_problem_of<OnlinePrefixProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
