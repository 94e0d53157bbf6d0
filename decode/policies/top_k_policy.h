// SPDX-License-Identifier: Apache-2.0
//
// How the buffer is kept in which the indexer leaves the top-k of a layer   [4.6].
#pragma once

#include <cstdint>
#include <optional>

namespace plumb::device::decode {

class TopKPolicy {
 public:
  virtual ~TopKPolicy() = default;
  // The byte that all rows of the step are filled with before the indexer runs: -1 is no state,
  // where no kernel writes. Nothing: they keep what an earlier layer or step left.
  virtual std::optional<std::uint8_t> reset() const { return 0xff; }
  // Requests whose rows, `next_n` each, the decode kernel writes: all that it gets. There are more
  // rows than tokens that decode where requests of different length are packed to one length, or
  // padded   [vLLM #42810].
  virtual std::int64_t ranked(std::int64_t requests, std::int64_t /*next_n*/,
                              std::int64_t /*num_decode_tokens*/) const {
    return requests;
  }
};

}  // namespace plumb::device::decode
