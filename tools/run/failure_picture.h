// SPDX-License-Identifier: Apache-2.0
//
// A wrong tensor in a few kilobytes, for the JSON report and its page: error over bound by row and
// column, the histogram of both, and expected values with what was stored.
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
  // The last dimension is a row. `live_rows` of `rows` belong to live rows of the batch; the others
  // are padding. Rows of one index of the first dimension: `group_rows` (heads of a token).
  std::int64_t rows = 0, columns = 0, live_rows = 0, group_rows = 0;
  // At most 64 strings of at most 64 characters: the largest error over bound of the rows and
  // columns that a cell stands for (kPictureLevels).
  std::vector<std::string> cells = {};
  // Elements by log2(error / bound): counts[i] have one in (2^(i-17), 2^(i-16)]; the first has all
  // below too, the last all above. Not of `exact`.
  std::vector<std::int64_t> counts = {};
  std::int64_t right = 0, infinite = 0, unpromised = 0;  // error 0; no bound or NaN; not compared
  // The worst elements, at most one of each of the worst rows first.
  std::vector<cases::Mismatch> worst = {};
  // "expected:stored" of up to 96 elements beyond their bound, and of others.
  std::string wrong_values = {}, right_values = {};
};

// Characters of a cell in the order of their error over bound: '.' nothing is compared, '0' no
// error, then half octaves up to the bound, which ends with level 20; from level 21 on wrong; the
// last one infinite. Level i is a ratio of at most 2^((i - 20) / 2).
std::string_view picture_levels();

// Of an expectation of the launch of `step`, whose batch has room for `capacity` rows. Empty
// `cells` if nothing is known of it but what is allowed (chosen experts).
TensorPicture picture_of(const cases::Expectation& expectation, std::int64_t live,
                         std::int64_t capacity);

// The wrong tensors of a case's first failure, four at most; none where no launch was kept.
std::vector<TensorPicture> failure_pictures(const cases::Case& which,
                                            const cases::RunOptions& options,
                                            const cases::CaseResult& result);

nlohmann::ordered_json to_json(const TensorPicture& picture);

}  // namespace plumb::tools
