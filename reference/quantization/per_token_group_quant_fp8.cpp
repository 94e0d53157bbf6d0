// SPDX-License-Identifier: Apache-2.0
#include "reference/quantization/per_token_group_quant_fp8.h"

#include <algorithm>

namespace plumb::reference {

GroupQuant per_token_group_quant_fp8(const ActivationQuant& options) {
  GroupQuant how = fp8_quant(options.dialect, options.group);
  how.amax_floor = options.amax_floor;
  how.scale_floor = options.scale_floor;
  how.by_reciprocal = options.by_reciprocal;
  return how;
}

CodeEstimate fill_up_words(const CodeEstimate& scale_bytes) {
  const Estimate& narrow = scale_bytes.before;
  CodeEstimate filled{.format = scale_bytes.format, .before = {}};
  filled.before.resize(narrow.rows, (narrow.columns + 3) / 4 * 4);
  std::ranges::fill(filled.before.value, 1.0);
  for (std::int64_t row = 0; row < narrow.rows; ++row) {
    const auto copy = [&](const std::vector<double>& from, std::vector<double>& to) {
      std::copy_n(from.begin() + row * narrow.columns, narrow.columns,
                  to.begin() + row * filled.before.columns);
    };
    copy(narrow.value, filled.before.value);
    copy(narrow.sigma, filled.before.sigma);
    copy(narrow.worst, filled.before.worst);
  }
  return filled;
}

}  // namespace plumb::reference
