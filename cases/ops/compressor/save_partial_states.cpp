// SPDX-License-Identifier: Apache-2.0
//
// Cases of save_partial_states. Before each launch the cache holds random bytes.
#include "reference/compressor/save_partial_states.h"

#include <bit>
#include <cmath>
#include <iterator>

#include "cases/ops/cache/cache_pool.h"
#include "cases/ops/compressor/state_members.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace save_partial_states_cases {

using reference::CacheEntry;

using P = plumb_save_partial_states_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), width = t.scalar("width", &P::width);
  const Formula ratio = t.scalar("ratio", &P::ratio);
  const Formula form = t.word("form", &P::form, state_forms());
  const Formula more = tokens + parameter("extra_tokens");
  const Formula kv_stride =
      t.scalar("kv_row_stride", &P::kv_row_stride, width + parameter("kv_gap"));
  const Formula score_stride =
      t.scalar("score_row_stride", &P::score_row_stride, width + parameter("score_gap"));
  t.input("kv", &P::kv, {more, width}, "projections").strides({kv_stride, 1});
  t.input("score", &P::score, {more, width}, "projected scores").strides({score_stride, 1});
  t.input("ape", &P::ape, {ratio, width}, "added to scores").when(!form);
  t.input("positions", &P::positions, {more}, "of each token");
  t.input("slot_mapping", &P::slot_mapping, {tokens}, "block * rows + row; negative: skipped");
  auto state = t.part("states", &P::states);
  const Formula blocks = or_else(parameter("blocks"), div_up(tokens, parameter("state_rows")) + 2);
  const StateSizes sizes =
      add_state_scalars(state, width, state_element_bytes(), blocks, {"blocks", "far"});
  state
      .in_place("data", &plumb_state_cache::data, {blocks, sizes.block_bytes},
                "states of other positions keep their bytes")
      .named("cache");
  return tokens;
}

class SavePartialStatesProblem final : public TableProblem<P> {
 public:
  SavePartialStatesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform) {
    pool_.tokens = p_.tokens;
    pool_.page = p_.states.rows;
    pool_.block_bytes = p_.states.block_stride_bytes;
    pool_.given_blocks = row.integer("blocks");
    pool_.holes_percent = row.integer("holes_percent");
    pool_.skip = PLUMB_SKIP_NEGATIVE;
    pool_.far = row.integer("far") != 0;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const int lowest = step.fill == Fill::adversarial ? -40 : -2;
    fill_floats(tensors.at("kv"), mix(step.seed, 1), step, lowest);
    fill_floats(tensors.at("score"), mix(step.seed, 2), step, lowest);
    if (p_.form == PLUMB_STATE_BIASED) {
      HostTensor& ape = tensors.at("ape");
      fill_values(ape, mix(step.seed, 3), ape.rows(), step.fill, -4);
    }
    fill_positions(step, tensors.at("positions"));
    fill_cache_pool(pool_, step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const bool bf16 = p_.form == PLUMB_STATE_RAW_BF16;
    const CacheContents contents(pool_, tensors, [&](std::int64_t row) {
      return reference::state_entry(p_.states.row_stride_bytes, row, 2 * p_.width * (bf16 ? 2 : 4));
    });
    const HostTensor stored =
        contents.stored("cache.state", bf16 ? Dtype::bf16 : Dtype::f32, &CacheEntry::copied);
    HostTensor right(stored.spec());
    const reference::PartialStates input = reference_input(tensors);
    const RowMask judged = contents.written();
    for (std::int64_t token = 0; token < p_.tokens; ++token) {
      if (!judged[token]) continue;
      if (input.ape != nullptr && input.positions[token] < 0) {
        throw BadRow("a token with a slot has a position below 0");
      }
      const std::vector<float> state = partial_state(input, token);
      for (std::int64_t i = 0; i < 2 * p_.width; ++i) {
        if (bf16) set_right(stored, token, i, reference::encode_bf16(state[i]), right);
        if (!bf16) set_right(stored, token, i, state[i], right);
      }
    }
    return {expect_bits(stored, std::move(right), judged, "differs from the projection"),
            contents.expect_rest()};
  }

  double cost() const override { return 20.0 * static_cast<double>(p_.tokens * (p_.width + 64)); }
  double reference_cost() const override {
    return 30.0 * static_cast<double>(p_.tokens * p_.width) +
           8.0 * static_cast<double>(pool_.blocks() * pool_.block_bytes);
  }
  double moved_bytes(const TensorSet& tensors) const override {
    const auto cache = static_cast<double>(pool_.blocks() * pool_.block_bytes);
    const double element = p_.form == PLUMB_STATE_RAW_BF16 ? 2 : 4;
    return Problem::moved_bytes(tensors) - 2 * cache +
           2 * element * static_cast<double>(p_.tokens * p_.width);
  }

 protected:
  void place(TensorSpec& spec) const override { place_cache_pool(pool_, spec); }

 private:
  static double number_of(float value) { return value; }
  static double number_of(std::uint16_t bits) { return reference::decode_bf16(bits); }

  // The bits of a NaN are unspecified, so those of a stored NaN are right.
  template <class T>
  static void set_right(const HostTensor& stored, std::int64_t token, std::int64_t i, T value,
                        HostTensor& right) {
    const T found = stored.row<T>(token)[i];
    const bool both_nan = std::isnan(number_of(value)) && std::isnan(number_of(found));
    right.row<T>(token)[i] = both_nan ? found : value;
  }

  // Numbers of both signs, about 2^lowest to 2^8, so that no sum is subnormal.
  static double number(std::uint64_t seed, std::uint64_t place, Fill fill, int lowest) {
    if (fill == Fill::exact) return static_cast<double>(integer(seed, place, -64, 64)) / 8;
    const std::uint64_t bits = random_bits(seed, ~place);
    const auto exponent = lowest + static_cast<int>(bits % static_cast<std::uint64_t>(8 - lowest));
    return std::ldexp(normal(seed, place), exponent);
  }
  static void fill_values(HostTensor& tensor, std::uint64_t seed, std::int64_t rows, Fill fill,
                          int lowest) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < tensor.columns(); ++i) {
        const auto place = static_cast<std::uint64_t>(row * tensor.columns() + i);
        tensor.row<float>(row)[i] = static_cast<float>(number(seed, place, fill, lowest));
      }
    }
  }
  // One value in 32 is -0, an infinity or a NaN: a later window may exclude its token by a score of
  // -infinity, and a NaN must stay one.
  static void add_special_values(HostTensor& tensor, std::uint64_t seed, std::int64_t rows) {
    constexpr std::uint32_t kSpecial[] = {0x80000000u, 0xff800000u, 0x7f800000u,
                                          0x7fffffffu, 0x7f800001u, 0xffc00000u};
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < tensor.columns(); ++i) {
        const auto place = static_cast<std::uint64_t>(row * tensor.columns() + i);
        const std::uint64_t bits = random_bits(mix(seed, 2), place);
        if (bits % 32 != 0) continue;
        tensor.row<float>(row)[i] =
            std::bit_cast<float>(kSpecial[(bits >> 32) % std::size(kSpecial)]);
      }
    }
  }
  static void fill_floats(HostTensor& tensor, std::uint64_t seed, const Step& step, int lowest) {
    fill_values(tensor, seed, step.live, step.fill, lowest);
    if (step.fill == Fill::adversarial) add_special_values(tensor, seed, step.live);
    fill_dead(tensor, step.live, tensor.rows(), step.dead_rows);
  }

  // Positions are drawn independently of slots, so that position % ratio does not follow from the
  // slot.
  void fill_positions(const Step& step, HostTensor& positions) const {
    const std::int64_t edges[] = {0, p_.ratio - 1, p_.ratio, p_.ratio + 1, 2 * p_.ratio - 1};
    auto* to = positions.data<std::int64_t>();
    for (std::int64_t token = 0; token < positions.elements(); ++token) {
      if (token >= step.live && step.dead_rows == DeadRows::foreign) continue;
      const auto place = static_cast<std::uint64_t>(token);
      const std::int64_t any = integer(mix(step.seed, 4), place, 0, (1 << 20) - 1);
      to[token] = token >= step.live ? 0 : step.fill == Fill::adversarial ? edges[token % 5] : any;
    }
  }

  reference::PartialStates reference_input(const TensorSet& tensors) const {
    reference::PartialStates input;
    input.kv = tensors.at("kv").data<float>();
    input.score = tensors.at("score").data<float>();
    if (p_.form == PLUMB_STATE_BIASED) input.ape = tensors.at("ape").data<float>();
    input.positions = tensors.at("positions").data<std::int64_t>();
    input.width = p_.width;
    input.ratio = p_.ratio;
    input.kv_row_stride = p_.kv_row_stride;
    input.score_row_stride = p_.score_row_stride;
    return input;
  }

  CachePoolShape pool_;
};

}  // namespace save_partial_states_cases

OpDefinition define_save_partial_states() {
  using namespace save_partial_states_cases;
  OpDefinition op;
  op.name = "save_partial_states";
  op.summary = "projections of the compressor into the state cache, row by row";
  op.parameters = {{"tokens", 4, 0, 1 << 20, "length of the slot mapping"},
                   {"extra_tokens", 0, 0, 1 << 20, "tokens past the slot mapping, which are none"},
                   {"width", 1024, 1, 65536, "of kv, and of the scores"},
                   {"ratio", 4, 1, 65536, "rows of ape"},
                   {"state_rows", 4, 1, 4096, "positions of a block"},
                   {"state_row_gap", 0, 0, 65536, "elements between two states, guarded"},
                   {"state_block_gap", 0, 0, 1 << 20, "elements between two blocks, guarded"},
                   {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the tokens need, and two"},
                   {"holes_percent", 0, 0, 100, "live tokens without a slot"},
                   {"kv_gap", 0, 0, 1 << 20, "elements between two rows of kv, guarded"},
                   {"score_gap", 0, 0, 1 << 20, "elements between two rows of score, guarded"},
                   {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"}};
  op.word_parameters = {kStateForm};
  op.make_problem = make_problem_of<SavePartialStatesProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
