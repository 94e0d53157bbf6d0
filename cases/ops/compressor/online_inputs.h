// SPDX-License-Identifier: Apache-2.0
//
// Inputs and verdicts of the ops on online states: kv and scores of tokens, ape, states, and the
// rows of states.
//
//   exact        one position of each group has all the weight, kv are 1 and -1
//   real         scores and kv as projections have them; sizes differ much between requests
//   adversarial  scores of 1e4, equal scores, one far above the others, -inf; kv that are small or
//                cancel; fresh states
#pragma once

#include <plumb/ops/compressor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/problem.h"
#include "cases/tables/table_part.h"
#include "cases/tensors/tensor.h"
#include "reference/compressor/online_states.h"

namespace plumb::cases {

// Adds the states, an in-place tensor [rows, 3 * head_dim] called `states`. `far`: name of the row
// parameter that places rows far apart; empty: none does.
void add_online_states(TablePart<plumb_online_states>& states, const Formula& rows,
                       const Formula& head_dim, const std::string& far);

// Tokens of the op's struct: kv, scores and ape.
template <class P>
void add_online_tokens(TablePart<P>& t, const Formula& tokens, const Formula& head_dim) {
  const Formula kv = t.scalar("kv_row_stride", &P::kv_row_stride, head_dim + parameter("kv_gap"));
  const Formula score =
      t.scalar("score_row_stride", &P::score_row_stride, head_dim + parameter("score_gap"));
  t.input("kv", &P::kv, {tokens, head_dim}, "projections").strides({kv, 1});
  t.input("score", &P::score, {tokens, head_dim}, "projected scores, without ape")
      .strides({score, 1});
  t.input("ape", &P::ape, {reference::kOnlineGroup, head_dim}, "added to scores");
}

// Parameters that all ops with tokens have.
std::vector<Parameter> online_token_parameters();

// The tokens of one request and the state in front of them.
struct OnlineRequest {
  std::int64_t number = 0;
  std::int64_t position = 0;  // of the first token
  bool fresh = false;         // no state, or a fresh one, is in front of the tokens
};

class OnlineInputs {
 public:
  OnlineInputs(const Step& step, std::int64_t head_dim) : step_(step), head_dim_(head_dim) {}

  void fill_ape(HostTensor& ape) const;
  // Rows [first_token, first_token + tokens) of kv and score.
  void fill_tokens(const OnlineRequest& request, std::int64_t first_token, std::int64_t tokens,
                   TensorSet& tensors) const;
  // The state of the group's positions in front of the tokens, or a fresh state.
  void write_state(const OnlineRequest& request, const HostTensor& ape, float* to) const;
  // True in some requests of adversarial fills, whose rows were just reset.
  bool is_reset(std::int64_t request) const;

 private:
  double kv(const OnlineRequest& request, std::int64_t position, std::int64_t channel) const;
  double score(const OnlineRequest& request, std::int64_t position, std::int64_t channel,
               double bias) const;
  std::uint64_t kind(const OnlineRequest& request) const;

  const Step& step_;
  std::int64_t head_dim_;
};

// Nanoseconds of the reference that appends `tokens` tokens to states.
inline double online_reference_cost(std::int64_t tokens, std::int64_t head_dim) {
  return 300.0 * static_cast<double>(tokens) * static_cast<double>(head_dim + 50);
}

// Reference's view of kv, score and ape.
reference::OnlineTokens online_tokens(const TensorSet& tensors, std::int64_t head_dim);

// Rows of the states that an op writes: written[i] is the host's row of the i-th state that it may
// write; -1: it writes none.
class StoredOnlineStates {
 public:
  StoredOnlineStates(const TensorSet& tensors, std::int64_t head_dim,
                     std::vector<std::int64_t> written);

  // Expects the reference's states, one for each row that is not -1, in order. `rows_per_group`:
  // states whose errors are tested for bias together.
  Expectations expect(const reference::OnlineStates& states, bool structured,
                      std::int64_t rows_per_group) const;
  // Expects that all rows but those of `written` keep their bits.
  Expectation expect_rest() const;

 private:
  HostTensor part(const std::string& name, std::int64_t part) const;

  const HostTensor& before_;
  const HostTensor& states_;
  std::int64_t head_dim_;
  std::vector<std::int64_t> written_;
};

}  // namespace plumb::cases
