// SPDX-License-Identifier: Apache-2.0
//
// A picture of a wrong tensor in a few kilobytes, for the JSON report and its page: error / bound
// by row and column, its histogram, and pairs of expected and stored values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "cases/judge/expectation.h"

namespace plumb::tools {

struct TensorPicture {
  std::string tensor, dtype, format, scales;
  std::vector<std::int64_t> shape;
  bool exact = false;  // integers, codes, bits: an element is right or wrong
  // A row is the last dimension. `live_rows` of `rows` belong to live rows of the batch, the others
  // are padding. `group_rows`: rows per index of the first dimension (heads of a token).
  std::int64_t rows = 0, columns = 0, live_rows = 0, group_rows = 0;
  // At most 64 strings of at most 64 characters. A character is the largest error / bound of the
  // rows and columns of its cell (picture_levels).
  std::vector<std::string> cells = {};
  // Histogram of log2(error / bound): counts[i] elements have a ratio in (2^(i-17), 2^(i-16)]. The
  // first bin also has all smaller ratios, the last all larger ones. Empty if `exact`.
  std::vector<std::int64_t> counts = {};
  std::int64_t right = 0, infinite = 0, unpromised = 0;  // error 0; no bound or NaN; not compared
  // The worst element of each wrong row, for the 12 worst rows at most, the worst first.
  std::vector<cases::Mismatch> worst = {};
  // Pairs "expected:stored" of up to 96 elements beyond their bound, and of other elements.
  std::string wrong_values = {}, right_values = {};
};

// Characters of cells, by error / bound: '.' nothing compared, '0' no error, then steps of half an
// octave. Level i means a ratio of at most 2^((i - 20) / 2): up to level 20 right, from level 21 on
// wrong. The last level is infinite.
std::string_view picture_levels();

// `live` of `capacity` rows of the batch are live. `cells` is empty if the expectation has no
// values but only says what is allowed (chosen experts).
TensorPicture picture_of(const cases::Expectation& expectation, std::int64_t live,
                         std::int64_t capacity);

// Pictures of the wrong tensors of a case's first failure, at most four; empty if no launch was
// kept.
std::vector<TensorPicture> failure_pictures(const cases::Case& which,
                                            const cases::RunOptions& options,
                                            const cases::CaseResult& result);

nlohmann::ordered_json to_json(const TensorPicture& picture);

}  // namespace plumb::tools
