// SPDX-License-Identifier: Apache-2.0
//
// Cases of online_compress. Rows of a batch are requests; padded ones have no tokens. States that
// are not read hold random bytes, among them those of requests whose first token begins a group.
#include <plumb/ops/compressor.h>

#include <algorithm>
#include <utility>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/compressor/online_inputs.h"
#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"
#include "reference/compressor/compress_norm_rope_insert.h"

namespace plumb::cases {

namespace online_compress_cases {

using P = plumb_online_compress_params;
using reference::OnlineSegment;

enum OnlineRowSalt : std::uint64_t { kStateRows = 71, kLostRows, kRandomStates, kRandomOut };

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula full = requests * parameter("queries");
  const Formula tokens = t.scalar("tokens", &P::tokens, unless_negative(parameter("tokens"), full));
  const Formula head_dim = t.scalar("head_dim", &P::head_dim);
  add_online_tokens(t, tokens, head_dim);
  add_queries(t, requests);
  t.input("read_rows", &P::read_rows, {requests, 1}, "of states; negative: a fresh state");
  t.input("write_rows", &P::write_rows, {requests, 1}, "of states; negative: nothing is stored");
  auto states = t.part("states", &P::states);
  add_online_states(states, or_else(parameter("state_rows"), 2 * requests + 2), head_dim, "far");
  t.in_place("out", &P::out, {tokens, head_dim}, "means of kv of closed groups");
  t.strides({{"out_row_stride", &P::out_row_stride}});
  return requests;
}

class OnlineCompressProblem final : public TableProblem<P> {
 public:
  OnlineCompressProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        lost_percent_(row.integer("lost_percent")),
        apart_(row.integer("apart") != 0) {
    queries_.requests = p_.requests;
    queries_.queries = row.integer("queries");
    queries_.context = row.integer("context");
    queries_.ragged = row.integer("ragged") != 0;
    queries_.given_tokens = p_.tokens;
    if (queries_.queries > queries_.context) {
      throw BadRow(row.where + ": more queries than context");
    }
    constexpr std::int64_t kGroup = reference::kOnlineGroup;
    for (const std::int64_t end : {std::int64_t{0}, queries_.queries}) {
      // Sequences that end, or tokens that begin, around the end of a group.
      for (const std::int64_t edge : {-1, 0, 1}) queries_.edges.push_back(end + kGroup + edge);
      queries_.edges.push_back(end + 2 * kGroup);
    }
    const std::int64_t given = row.integer("state_rows");
    rows_ = {given != 0 ? given : needed_rows(), p_.states.row_stride, row.integer("far") != 0};
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    check_blocks(rows_.blocks, needed_rows());
    fill_queries(queries_, step, tensors);
    const OnlineInputs inputs(step, p_.head_dim);
    inputs.fill_ape(tensors.at("ape"));
    fill_bytes(tensors.at("states_before"), mix(step.seed, kRandomStates));
    fill_bytes(tensors.at("out_before"), mix(step.seed, kRandomOut));
    const auto order = permuted_blocks(rows_.blocks, mix(step.seed, kStateRows));
    for (std::int64_t request = 0; request < step.live; ++request) {
      fill_request(inputs, step, request, order, tensors);
    }
    const std::int64_t live_tokens = queries_.reference(tensors).tokens();
    for (const char* const name : {"kv", "score"}) {
      fill_dead(tensors.at(name), live_tokens, p_.tokens, step.dead_rows);
    }
    fill_dead_rows(step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    constexpr auto kLast = reference::StateOf::last_token;
    const OnlineBatch batch = batch_of(tensors);
    const bool structured = step.fill != Fill::real;
    const reference::OnlineTokens input = online_tokens(tensors, p_.head_dim);
    const StoredOnlineStates stored(tensors, p_.head_dim, batch.written);
    Expectations all = stored.expect(online_states(input, batch.open, kLast, numerics), structured,
                                     kStatesOfGroup);
    all.push_back(stored.expect_rest());
    reference::Estimate means = placed_states(
        online_states(input, batch.closed, kLast, numerics).mean, batch.closing, p_.tokens);
    means.structured = structured;
    all.push_back(expect_floats(tensors.at("out"), std::move(means), mask_of(batch.closing),
                                groups_of(p_.tokens, 64, "64 tokens")));
    all.push_back(expect_other_tokens(tensors, batch.closing));
    return all;
  }

  bool rows_have_places() const override { return false; }  // tokens are packed
  double cost() const override {
    return 25.0 * static_cast<double>(p_.tokens + p_.requests) * static_cast<double>(p_.head_dim);
  }
  double reference_cost() const override { return online_reference_cost(p_.tokens, p_.head_dim); }
  double checked_factor() const override { return 12; }

 protected:
  void place(TensorSpec& spec) const override {
    if (spec.name.starts_with("states")) rows_.place(spec);
  }

 private:
  static constexpr std::int64_t kStatesOfGroup = 16;  // judged for bias together

  // Segments of all requests. closing: the last token of each closed segment. written: per request,
  // the row on the host of its state; -1: none.
  struct OnlineBatch {
    std::vector<OnlineSegment> open, closed;
    std::vector<std::int64_t> written, closing;
  };

  // A row for each request, and another one for requests that read and write different rows.
  std::int64_t needed_rows() const { return 2 * p_.requests + 2; }

  void fill_request(const OnlineInputs& inputs, const Step& step, std::int64_t number,
                    const std::vector<std::int64_t>& order, TensorSet& tensors) const {
    const auto* starts = tensors.at("query_start_loc").data<std::int32_t>();
    const std::int64_t tokens = starts[number + 1] - starts[number];
    const std::int64_t length = tensors.at("seq_lens").data<std::int32_t>()[number];
    const std::uint64_t lost = mix(step.seed, kLostRows);
    const auto is_lost = [&](std::uint64_t salt) {
      const std::uint64_t bits = random_bits(mix(lost, salt), static_cast<std::uint64_t>(number));
      return static_cast<std::int64_t>(bits % 100) < lost_percent_;
    };
    const bool reads = !is_lost(1), writes = !is_lost(2);
    const OnlineRequest request{number, length - tokens, !reads || inputs.is_reset(number)};
    const std::int64_t write = order[number], read = apart_ ? order[p_.requests + number] : write;
    if (reads && request.position % reference::kOnlineGroup != 0) {
      inputs.write_state(request, tensors.at("ape"), tensors.at("states_before").row<float>(read));
    }
    tensors.at("read_rows").data<std::int64_t>()[number] = reads ? rows_.address(read) : -1;
    tensors.at("write_rows").data<std::int64_t>()[number] = writes ? rows_.address(write) : -2;
    inputs.fill_tokens(request, starts[number], tokens, tensors);
  }

  void fill_dead_rows(const Step& step, TensorSet& tensors) const {
    if (step.dead_rows == DeadRows::foreign) return;
    for (const char* const name : {"read_rows", "write_rows"}) {
      auto* const to = tensors.at(name).data<std::int64_t>();
      std::fill(to + step.live, to + p_.requests, step.dead_rows == DeadRows::zero ? 0 : -1);
    }
  }

  // Row on the host; -1: none. Throws BadRow for a row that there is not.
  std::int64_t host_row(std::int64_t row) const {
    if (row < 0) return -1;
    const std::int64_t found = rows_.block_at(row);
    if (found < 0) throw BadRow("a row of states that there is not");
    return found;
  }

  OnlineBatch batch_of(const TensorSet& tensors) const {
    OnlineBatch batch;
    const reference::QueryLayout queries = queries_.reference(tensors);
    const auto* reads = tensors.at("read_rows").data<std::int64_t>();
    const auto* writes = tensors.at("write_rows").data<std::int64_t>();
    if (queries.query_start_loc[0] != 0) throw BadRow("query_start_loc does not begin with 0");
    std::int64_t token = 0;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      const std::int64_t tokens = queries.query_len(request);
      const std::int64_t position = queries.seq_lens[request] - tokens;
      if (tokens < 0 || tokens > p_.tokens - token) throw BadRow("tokens that there are not");
      if (tokens > 0 && position < 0) throw BadRow("a token has a position below 0");
      const std::int64_t row = tokens > 0 ? host_row(reads[request]) : -1;
      const float* const state = row < 0 ? nullptr : tensors.at("states_before").row<float>(row);
      batch.written.push_back(-1);
      for (const OnlineSegment& segment :
           reference::online_segments(token, tokens, position, state)) {
        if (segment.closes()) {
          batch.closed.push_back(segment);
          batch.closing.push_back(segment.first_token + segment.tokens - 1);
        } else if (writes[request] >= 0) {
          batch.open.push_back(segment);
          batch.written.back() = host_row(writes[request]);
        }
      }
      token += tokens;
    }
    return batch;
  }

  static Expectation expect_other_tokens(const TensorSet& tensors,
                                         const std::vector<std::int64_t>& closing) {
    const HostTensor& out = tensors.at("out");
    HostTensor expected = tensors.at("out_before");
    for (const std::int64_t token : closing) {
      std::copy_n(out.row<float>(token), out.columns(), expected.row<float>(token));
    }
    return expect_bits(out, std::move(expected), {},
                       "a row of a token that closes no group changed");
  }

  RowMask mask_of(const std::vector<std::int64_t>& tokens) const {
    RowMask mask(static_cast<std::size_t>(p_.tokens));
    for (const std::int64_t token : tokens) mask[token] = true;
    return mask;
  }

  QueryShape queries_;
  BlockNumbering rows_;
  std::int64_t lost_percent_;
  bool apart_;
};

}  // namespace online_compress_cases

OpDefinition define_online_compress() {
  using namespace online_compress_cases;
  OpDefinition op;
  op.name = "online_compress";
  op.summary = "SGLang's C128A: tokens of a step into states of open groups, and closed groups";
  op.parameters = {{"requests", 4, 0, 65536, "padded requests"},
                   {"queries", 1, 1, 65536, "most query tokens of a request"},
                   {"tokens", -1, -1, 1 << 20, "of the call; -1: those of full requests"},
                   {"ragged", 0, 0, 1, "requests with fewer query tokens, also none"},
                   {"context", 600, 1, 1 << 24, "longest sequence"},
                   {"state_rows", 0, 0, 1 << 30, "of the states; 0: two per request, and two"},
                   {"lost_percent", 0, 0, 100, "requests that read no row, or write none"},
                   {"apart", 0, 0, 1, "1: requests read and write different rows"},
                   {"far", 0, 0, 1, "1: rows around 2^31 and 2^32 elements into the states"}};
  for (const Parameter& parameter : online_token_parameters()) op.parameters.push_back(parameter);
  op.make_problem = make_problem_of<OnlineCompressProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
