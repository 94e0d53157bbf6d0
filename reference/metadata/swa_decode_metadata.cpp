// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/swa_decode_metadata.h"

#include <algorithm>

#include "reference/metadata/combine_topk_swa_indices_ragged.h"

namespace plumb::reference {

SwaMetadata swa_decode_metadata(const SwaBatch& input) {
  SwaMetadata out;
  out.swa_indices.assign(static_cast<std::size_t>(input.tokens * input.window), -1);
  out.swa_lens.assign(static_cast<std::size_t>(input.tokens), 0);
  out.token_to_req = out.is_valid_token = out.swa_lens;
  const std::vector<QueryToken> queries = query_tokens(input.queries, input.tokens);
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    out.is_valid_token[token] = input.slot_mapping[token] >= 0;
    if (token >= std::ssize(queries)) continue;
    const QueryToken& query = queries[token];
    out.token_to_req[token] = query.request;
    if (!out.is_valid_token[token]) continue;
    std::int64_t& length = out.swa_lens[token];
    std::int64_t position = std::max<std::int64_t>(query.position - input.window + 1, 0);
    for (; position <= query.position; ++position) {
      out.swa_indices[token * input.window + length++] =
          input.block_table.slot(query.request, position);
    }
  }
  for (std::int64_t request = 0; request < input.queries.requests; ++request) {
    out.gather_lens.push_back(prefill_gather_len(input.queries.seq_lens[request],
                                                 input.queries.query_len(request), input.window));
  }
  return out;
}

}  // namespace plumb::reference
