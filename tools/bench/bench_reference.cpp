// SPDX-License-Identifier: Apache-2.0
//
// Measures the reference of sparse MLA against its two matrix products alone, q k^T and p v, over a
// gathered key matrix. The difference is the decoding of the caches, the softmax and the error
// model.
#include <fmt/format.h>

#include <Eigen/Core>
#include <cmath>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"
#include "reference/sparse_mla/sparse_mla_decode.h"
#include "tools/bench/bench.h"

namespace plumb::tools {

namespace {

using namespace reference;

constexpr std::int64_t kMain = 128, kExtra = 1024, kCandidates = kMain + kExtra;
constexpr std::int64_t kPage = 64, kPages = 64;

// Both caches hold the same tokens. Each row attends other random slots.
class MlaInputs {
 public:
  MlaInputs(std::int64_t tokens, std::int64_t heads)
      : q_(tokens * heads * kMlaDim),
        slots_(tokens * kCandidates),
        cache_(kPages * kv_block_bytes(kPage)) {
    for (std::size_t i = 0; i < q_.size(); ++i) {
      q_[i] = encode_bf16(static_cast<float>(cases::normal(1, i)));
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i] = static_cast<std::int32_t>(cases::integer(2, i, 0, kPage * kPages - 1));
    }
    write_tokens();
    problem.q = q_.data();
    problem.requests = tokens;
    problem.heads = heads;
    problem.q_request_stride = problem.q_query_stride = heads * kMlaDim;
    problem.q_head_stride = kMlaDim;
    problem.main_cache = problem.extra_cache = {cache_.data(), kv_block_bytes(kPage), kPages, kPage,
                                                Dialect::e4m3fn};
    problem.main = {slots_.data(), nullptr, nullptr, kCandidates, kCandidates, kMain};
    problem.extra = {slots_.data() + kMain, nullptr, nullptr, kCandidates, kCandidates, kExtra};
    problem.sm_scale = 1 / std::sqrt(static_cast<float>(kMlaDim));
  }
  MlaInputs(const MlaInputs&) = delete;
  MlaInputs& operator=(const MlaInputs&) = delete;

  SparseMlaProblem problem;

 private:
  void write_tokens() {
    std::vector<float> token(kMlaDim);
    for (std::int64_t slot = 0; slot < kPages * kPage; ++slot) {
      for (std::int64_t i = 0; i < kMlaDim; ++i) {
        token[i] = static_cast<float>(cases::normal(3, slot * kMlaDim + i));
      }
      encode_token(cache_.data() + slot / kPage * kv_block_bytes(kPage), kPage, slot % kPage,
                   Dialect::e4m3fn, std::span<const float, kMlaDim>(token));
    }
  }

  std::vector<std::uint16_t> q_;
  std::vector<std::int32_t> slots_;
  std::vector<std::uint8_t> cache_;
};

// Cache sizes from which Eigen chooses its blocking. The reference sets them for the whole program.
struct CacheSizes {
  std::ptrdiff_t l1 = Eigen::l1CacheSize(), l2 = Eigen::l2CacheSize(), l3 = Eigen::l3CacheSize();
  void use() const { Eigen::setCpuCacheSizes(l1, l2, l3); }
};
const CacheSizes kOfThisMachine;  // read before a reference has run and set them

// The two products, with Eigen's own blocking.
class EigenProducts {
 public:
  EigenProducts(std::int64_t tokens, std::int64_t heads)
      : tokens_(tokens),
        keys_(Eigen::MatrixXd::Random(kMlaDim, kCandidates)),
        queries_(Eigen::MatrixXd::Random(kMlaDim, heads)) {}

  void run() {
    const CacheSizes of_the_reference;
    kOfThisMachine.use();
    for (std::int64_t token = 0; token < tokens_; ++token) {
      scores_.noalias() = keys_.transpose() * queries_;
      out_.noalias() = keys_ * scores_;
    }
    of_the_reference.use();
  }

 private:
  std::int64_t tokens_;
  Eigen::MatrixXd keys_, queries_, scores_, out_;
};

Measurement ratio(const std::string& name, const std::vector<double>& eigen,
                  const std::vector<double>& ours, double target, double operations) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(eigen[i] / ours[i]);
  const Summary share = summarize(ratios);
  const double theirs = summarize(eigen).median, own = summarize(ours).median;
  return {name,
          share.median,
          share.spread,
          "",
          {.least = target},
          fmt::format("Eigen {:.1f} ms ({:.1f} Gflop/s), reference {:.1f} ms", 1e3 * theirs,
                      1e-9 * operations / theirs, 1e3 * own),
          {{"eigen", theirs, "s"}, {"reference", own, "s"}}};
}

void measure_heads(std::int64_t tokens, std::int64_t heads, int repetitions,
                   std::vector<Measurement>& measured) {
  EigenProducts products(tokens, heads);
  const MlaInputs inputs(tokens, heads);
  const auto seconds = interleave(
      {[&] { products.run(); }, [&] { sparse_mla_decode(inputs.problem, {}, MlaWant::value); },
       [&] { sparse_mla_decode(inputs.problem, {}, MlaWant::value_and_bound); }},
      repetitions);
  const auto operations = static_cast<double>(2 * 2 * tokens * heads * kCandidates * kMlaDim);
  const std::string shape = fmt::format("{} heads, {} tokens", heads, tokens);
  measured.push_back(ratio("value, " + shape, seconds[0], seconds[1], 0.5, operations));
  measured.push_back(ratio("value and bound, " + shape, seconds[0], seconds[2], 0.2, operations));
}

}  // namespace

std::vector<Measurement> bench_reference() {
  std::vector<Measurement> measured;
  measure_heads(4, 16, 9, measured);
  measure_heads(2, 128, 5, measured);
  return measured;
}

}  // namespace plumb::tools
