// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/compressor/online_banks.h"

namespace plumb::cases {

namespace {

enum BankSalt : std::uint64_t { kBankOrder = 91, kBankSkips };

}  // namespace

std::vector<Parameter> online_bank_parameters() {
  return {{"requests", 4, 0, 65536, "padded requests"},
          {"verify_tokens", 4, 1, 8, "verified tokens of each request"},
          {"bank_rows", 0, 0, 1 << 20, "rows of a bank; 0: two more than requests"},
          {"more_rows", 0, 0, 1 << 20, "rows behind the last bank"},
          {"skipped_percent", 0, 0, 100, "live requests without a row"}};
}

void OnlineBankRows::fill(const Step& step, HostTensor& request_rows) const {
  check_blocks(bank_rows_, requests_ + 1);
  const auto order = permuted_blocks(bank_rows_, mix(step.seed, kBankOrder));
  const std::int64_t outside[] = {-1, bank_rows_, -2, bank_rows_ + 1};
  auto* const to = request_rows.data<std::int64_t>();
  for (std::int64_t request = 0; request < requests_; ++request) {
    const std::uint64_t bits =
        random_bits(mix(step.seed, kBankSkips), static_cast<std::uint64_t>(request));
    const bool skipped =
        request >= step.live || static_cast<std::int64_t>(bits % 100) < skipped_percent_;
    to[request] = skipped ? outside[bits / 100 % 4] : order[request];
  }
}

}  // namespace plumb::cases
