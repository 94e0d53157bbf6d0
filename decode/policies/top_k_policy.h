// SPDX-License-Identifier: Apache-2.0
//
// Choices about the buffer that holds the indexer's top-k of a layer   [4.6].
#pragma once

#include <cstdint>
#include <optional>

namespace plumb::device::decode {

class TopKPolicy {
 public:
  virtual ~TopKPolicy() = default;
  // Byte that fills all rows of a step before the indexer runs: 0xff gives -1 (no state) where no
  // kernel writes. nullopt: rows keep what an earlier layer or step left.
  virtual std::optional<std::uint8_t> reset() const { return 0xff; }
  // Number of requests, of `next_n` rows each, that the decode kernel ranks: all of the batch.
  // num_decode_tokens is smaller than the number of rows if requests of different length are packed
  // to one length, or padded   [vLLM #42810].
  virtual std::int64_t ranked(std::int64_t requests, std::int64_t /*next_n*/,
                              std::int64_t /*num_decode_tokens*/) const {
    return requests;
  }
};

}  // namespace plumb::device::decode
