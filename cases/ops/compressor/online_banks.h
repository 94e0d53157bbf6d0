// SPDX-License-Identifier: Apache-2.0
//
// Banks of online states, as the ops of a verification step have them: bank 0 holds the committed
// states, bank j the states after j verified tokens.
#pragma once

#include <plumb/ops/compressor.h>

#include <cstdint>
#include <vector>

#include "cases/ops/cache/block_numbering.h"
#include "cases/ops/compressor/online_inputs.h"
#include "cases/tables/table_part.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

// Adds the scalars of the banks, `request_rows`, `seq_lens` and the states.
template <class P>
void add_online_banks(TablePart<P>& t, const Formula& requests, const Formula& head_dim) {
  const Formula tokens = t.scalar("verify_tokens", &P::verify_tokens);
  const Formula rows =
      t.scalar("bank_rows", &P::bank_rows, or_else(parameter("bank_rows"), requests + 2));
  t.input("seq_lens", &P::seq_lens, {requests, 1}, "tokens of each sequence; negative: skipped");
  t.input("request_rows", &P::request_rows, {requests, 1}, "of bank 0; outside of it: skipped");
  auto states = t.part("states", &P::states);
  add_online_states(states, (tokens + 1) * rows + parameter("more_rows"), head_dim, "");
}

std::vector<Parameter> online_bank_parameters();

// The rows of a step's requests, which are different, and never row 0. Some live requests have no
// row, as all dead ones do.
class OnlineBankRows {
 public:
  OnlineBankRows(std::int64_t requests, std::int64_t bank_rows, std::int64_t skipped_percent)
      : requests_(requests), bank_rows_(bank_rows), skipped_percent_(skipped_percent) {}

  void fill(const Step& step, HostTensor& request_rows) const;

 private:
  std::int64_t requests_, bank_rows_, skipped_percent_;
};

}  // namespace plumb::cases
