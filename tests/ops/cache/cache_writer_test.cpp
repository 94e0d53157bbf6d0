// SPDX-License-Identifier: Apache-2.0
//
// Tests the kernels' fp8 and UE8M0 encoders against the reference's. Also tests the V4 cache with
// its real writer and reader: attention over a cache that quantize_and_insert_k_cache stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#define PLUMB_KERNEL_SET cache_writer_test_kernels
#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "device/kernels/quantization/group_quant.h"
#include "reference/cache/kv_cache.h"
#include "reference/formats/bfloat16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e8m0.h"

namespace plumb::device::kernels {
device::OpEntry sparse_mla_decode();
device::OpEntry quantize_and_insert_k_cache();
}  // namespace plumb::device::kernels
namespace plumb::cases {
OpDefinition define_sparse_mla_decode();
}

namespace plumb::cases {
namespace cache_writer_test {

namespace kernels = device::cache_writer_test_kernels;
using reference::Dialect;
using reference::kMlaDim;

constexpr Dialect kDialects[] = {Dialect::e4m3fn, Dialect::e4m3fnuz};
plumb_format format_of(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? PLUMB_E4M3FN : PLUMB_E4M3FNUZ;
}

bool encodes_alike(float value) {
  for (const Dialect dialect : kDialects) {
    if (kernels::encode_e4m3(value, format_of(dialect)) !=
        reference::encode_e4m3(double{value}, dialect)) {
      return false;
    }
  }
  return true;
}

TEST(DeviceEncoders, RoundEveryBf16AsTheReferenceDoes) {
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    EXPECT_TRUE(encodes_alike(std::bit_cast<float>(bits << 16))) << std::hex << bits;
  }
}

TEST(DeviceEncoders, TieWhereTheReferenceDoes) {
  for (const Dialect dialect : kDialects) {
    const auto& values = reference::e4m3_values(dialect);
    for (int code = 0; code <= reference::e4m3_max_code(dialect); ++code) {
      const double next =
          code == reference::e4m3_max_code(dialect) ? 2 * values[code] : values[code + 1];
      const auto tie = static_cast<float>((values[code] + next) / 2);
      for (const float near : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, 1e9f)}) {
        EXPECT_TRUE(encodes_alike(near)) << near;
        EXPECT_TRUE(encodes_alike(-near)) << -near;
      }
    }
  }
}

TEST(DeviceEncoders, ScalesAreRoundedUpFromTheirBits) {
  for (int exponent = -125; exponent < 127; ++exponent) {
    const float power = std::ldexp(1.0f, exponent);
    for (const float scale : {std::nextafter(power, 0.0f), power, std::nextafter(power, 1e38f)}) {
      EXPECT_EQ(kernels::encode_ue8m0(scale), reference::encode_e8m0_by_bits(scale)) << scale;
    }
  }
  EXPECT_EQ(kernels::encode_ue8m0(1e-4f / 448), 105);
}

// kernels::quotient must equal the division of every bf16 number up to `amax`, of either sign, by
// `scale`.
void expect_quotients_of_division(float amax, float scale) {
  const auto fma = [](float a, float b, float c) { return std::fma(a, b, c); };
  const kernels::LongInverse inverse = kernels::long_inverse(scale, fma);
  EXPECT_EQ(std::signbit(kernels::quotient(-0.0F, inverse, fma)), true) << scale;
  // Quotients below 2^-20 round to zero in fp8.
  const auto least = std::max(std::bit_cast<std::uint32_t>(scale * 0x1p-20F) >> 16, 1U);
  for (std::uint32_t bits = least; bits <= std::bit_cast<std::uint32_t>(amax) >> 16; ++bits) {
    const float x = std::bit_cast<float>(bits << 16);
    ASSERT_EQ(kernels::quotient(x, inverse, fma), x / scale) << x << " by " << scale;
    ASSERT_EQ(kernels::quotient(-x, inverse, fma), -x / scale) << -x << " by " << scale;
  }
}

TEST(DeviceQuotients, AreThoseOfDivisionForEveryScale) {
  for (const float largest : {448.0F, 224.0F}) {
    for (const int exponent : {-117, -60, 0, 100}) {
      for (int mantissa = 128; mantissa < 256; ++mantissa) {
        const float amax = std::ldexp(static_cast<float>(mantissa), exponent - 7);
        expect_quotients_of_division(amax, amax / largest);
      }
    }
    for (const float floor : {1e-4F, 1e-8F}) {
      expect_quotients_of_division(floor, floor / largest);  // the indexer's floor
    }
    expect_quotients_of_division(1e-4F * largest, 1e-4F);  // a scale_floor of V3.2's writer
    expect_quotients_of_division(0x1p-119F, 0x1p-126F);    // the least scale of V3.2
  }
}

// One product with the rounded inverse is not always the correctly rounded quotient.
TEST(DeviceQuotients, AreNotThoseOfOneProduct) {
  int different = 0;
  for (int mantissa = 128; mantissa < 256; ++mantissa) {
    const auto amax = static_cast<float>(mantissa);
    const float scale = amax / 448, inverse = 1 / scale;
    for (int bits = 128; bits < 256; ++bits) {
      const auto x = static_cast<float>(bits);
      different += x * inverse != x / scale;
    }
  }
  EXPECT_GT(different, 0);
}

Row decode_row(std::int64_t width, std::int64_t page, const std::string& dialect) {
  Row row;
  row.op = "sparse_mla_decode";
  row.where = "test";
  for (const Parameter& parameter : define_sparse_mla_decode().parameters) {
    row.integers[std::string(parameter.name)] = parameter.default_value;
  }
  row.integers["requests"] = 3;
  row.integers["heads"] = 4;
  row.integers["width"] = width;
  row.integers["page"] = page;
  row.words = {{"dialect", dialect}, {"lengths", "none"}, {"sinks", "none"}};
  return row;
}

// A sparse MLA decode whose main cache was stored from `kv` by the writer's kernel.
class WrittenCache {
 public:
  using TokenValue = std::function<double(std::int64_t token, std::int64_t dim)>;

  WrittenCache(const Row& row, std::string_view platform, const TokenValue& value)
      : device_(device::open_device(platform, {})),
        problem_(define_sparse_mla_decode().make_problem(row, device_->properties())),
        tensors_(problem_->make_tensors()),
        stream_(device_->create_stream()) {
    problem_->fill(step_, tensors_);
    for (HostTensor& tensor : tensors_.all()) upload(tensor);
    write(row, value);
    state_ = problem_->make_state(addresses_);
    decode_ = device::kernels::sparse_mla_decode();
    EXPECT_EQ(problem_->launch(decode_, addresses_, state_.get(), stream_), PLUMB_OK);
    for (HostTensor& tensor : tensors_.all()) {
      device_->copy(tensor.bytes().data(), addresses_.get<void>(tensor.spec().name),
                    tensor.bytes().size(), stream_);
    }
    device_->synchronize(stream_);
  }

  const TensorSet& tensors() const { return tensors_; }
  // The reference's verdict on the decode, based on the bytes that the writer stored.
  std::vector<TensorReport> judge() const {
    return problem_->judge(step_, tensors_, to_reference(decode_.numerics), decode_.numerics);
  }

 private:
  void upload(HostTensor& tensor) {
    void* memory = device_->allocate(tensor.bytes().size(), tensor.spec().name);
    addresses_.set(tensor.spec().name, memory);
    device_->copy(memory, tensor.bytes().data(), tensor.bytes().size(), stream_);
  }

  // Writes one token to every slot of the cache, in order.
  void write(const Row& row, const TokenValue& value) {
    const HostTensor& cache = tensors_.at("main_cache");
    const std::int64_t page = row.integer("page"), slots = cache.rows() * page;
    HostTensor kv({.name = "kv", .dtype = Dtype::bf16, .shape = {slots, kMlaDim}});
    HostTensor mapping({.name = "slot_mapping", .dtype = Dtype::i64, .shape = {slots}});
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      mapping.data<std::int64_t>()[slot] = slot;
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        kv.row<std::uint16_t>(slot)[d] = reference::encode_bf16(value(slot, d));
      }
    }
    upload(kv);
    upload(mapping);
    plumb_quantize_and_insert_k_cache_params p{};
    p.kv = addresses_.get<std::uint16_t>("kv");
    p.slot_mapping = addresses_.get<std::int64_t>("slot_mapping");
    p.cache = {.data = addresses_.get<std::uint8_t>("main_cache"),
               .block_stride_bytes = cache.columns(),
               .num_blocks = cache.rows(),
               .page = static_cast<std::int32_t>(page),
               .dialect = row.word("dialect") == "e4m3fn" ? PLUMB_E4M3FN : PLUMB_E4M3FNUZ};
    p.tokens = slots;
    p.kv_row_stride = kMlaDim;
    p.amax_floor = 1e-4F;
    p.stream = stream_;
    EXPECT_EQ(device::kernels::quantize_and_insert_k_cache().launch(&p), PLUMB_OK);
    device_->synchronize(stream_);
  }

  Step step_{.seed = 5, .live = 3, .fill = Fill::real};
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<Problem> problem_;
  TensorSet tensors_;
  DeviceTensors addresses_;
  device::Stream stream_;
  std::unique_ptr<OpState> state_;
  device::OpEntry decode_{};
};

TEST(CacheWriterAndReader, AttentionOverWrittenTokensAgreesWithTheReference) {
  const auto value = [](std::int64_t token, std::int64_t dim) {
    const double scale = std::ldexp(1.0, static_cast<int>((token + dim / 64) % 7) - 3);
    return scale * normal(9, static_cast<std::uint64_t>(token * kMlaDim + dim));
  };
  for (const std::string platform : {"sim-sm90", "sim-gfx942"}) {
    for (const std::string dialect : {"e4m3fn", "e4m3fnuz"}) {
      for (const std::int64_t page : {1, 53, 64}) {
        const WrittenCache written(decode_row(100, page, dialect), platform, value);
        for (const TensorReport& report : written.judge()) {
          EXPECT_TRUE(report.passed())
              << platform << " " << dialect << " page " << page << ": " << report.failures.front();
        }
      }
    }
  }
}

// The specification's tile, repeated. Its scale byte is 121 (122 in fnuz), and kBack are the
// dequantised values.
TEST(CacheWriterAndReader, OneCandidateIsItsDequantisedValue) {
  constexpr double kTile[] = {3.7, -1, 0.1, 0, -0.0, -1e-9};
  constexpr double kBack[] = {3.75, -1, 0.1015625, 0, 0, 0};
  const auto value = [&](std::int64_t, std::int64_t dim) { return kTile[dim % 64 % 6]; };
  for (const std::string platform : {"sim-sm90", "sim-gfx942"}) {
    for (const std::string dialect : {"e4m3fn", "e4m3fnuz"}) {
      const WrittenCache written(decode_row(1, 4, dialect), platform, value);
      const HostTensor& cache = written.tensors().at("main_cache");
      const auto* block = cache.row<std::uint8_t>(1);
      EXPECT_EQ(block[4 * 576 + 8], dialect == "e4m3fn" ? 121 : 122);
      EXPECT_EQ(block[4 * 576 + 8 + 7], 0);
      EXPECT_EQ(block[576], 0x77);
      EXPECT_EQ(block[576 + 5], dialect == "e4m3fn" ? 0x80 : 0x00);
      const HostTensor& out = written.tensors().at("out");
      for (std::int64_t row = 0; row < out.rows(); ++row) {
        for (std::int64_t d = 0; d < reference::kMlaNope; ++d) {
          ASSERT_EQ(out.value(row, d), kBack[d % 64 % 6]) << platform << " " << dialect << " " << d;
        }
        EXPECT_EQ(out.value(row, reference::kMlaNope),
                  reference::decode_bf16(reference::encode_bf16(3.7)));
      }
    }
  }
}

}  // namespace cache_writer_test
}  // namespace plumb::cases
