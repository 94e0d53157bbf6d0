// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/golden_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e8m0.h"

namespace plumb::tools {

namespace {

using cases::Dtype;
using golden::CaseGolden;
using golden::GoldenFile;
using golden::TensorGolden;
using golden::TensorSketch;
using Put = std::function<void(std::string_view)>;

template <class T>
T number_at(const std::byte* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// The value of a code. Bytes of a cache layout are shown in hexadecimal.
std::string code_text(std::uint8_t code, const std::string& format) {
  using reference::Dialect;
  if (format == "number") return fmt::format("{}", code);
  if (format == "e4m3fn")
    return fmt::format("{:.4g}", reference::decode_e4m3(code, Dialect::e4m3fn));
  if (format == "e4m3fnuz")
    return fmt::format("{:.4g}", reference::decode_e4m3(code, Dialect::e4m3fnuz));
  if (format == "ue8m0") return fmt::format("{:.6g}", reference::decode_e8m0(code));
  if (format != "e2m1") return fmt::format("{:02x}", code);
  return fmt::format("{:g},{:g}", reference::decode_e2m1(reference::unpack_e2m1(code, 0)),
                     reference::decode_e2m1(reference::unpack_e2m1(code, 1)));
}

// The digits identify the stored bits, except for NaN.
std::string element_text(const TensorGolden& tensor, const std::byte* at) {
  switch (tensor.dtype) {
    case Dtype::u8: return code_text(number_at<std::uint8_t>(at), tensor.format);
    case Dtype::i32: return fmt::format("{}", number_at<std::int32_t>(at));
    case Dtype::i64: return fmt::format("{}", number_at<std::int64_t>(at));
    case Dtype::bf16:
      return fmt::format("{:.4g}",
                         std::bit_cast<float>(std::uint32_t{number_at<std::uint16_t>(at)} << 16));
    case Dtype::f32: return fmt::format("{:.9g}", number_at<float>(at));
  }
  return "?";
}

// "    row 3, 0-7: 0.5 0.25 …", eight elements per line.
void put_row(const TensorGolden& tensor, std::int64_t row, const std::byte* bytes, const Put& put) {
  constexpr std::int64_t kInLine = 8;
  const std::size_t size = cases::size_of(tensor.dtype);
  for (std::int64_t begin = 0; begin < tensor.columns(); begin += kInLine) {
    const std::int64_t end = std::min(begin + kInLine, tensor.columns());
    std::string line = fmt::format("    row {}, {}-{}:", row, begin, end - 1);
    for (std::int64_t i = begin; i < end; ++i) {
      line += " " + element_text(tensor, bytes + static_cast<std::size_t>(i) * size);
    }
    put(line + "\n");
  }
}

void put_values(const TensorGolden& tensor, const Put& put) {
  const std::size_t row_bytes = tensor.row_bytes();
  if (row_bytes == 0) return;
  const auto stored = static_cast<std::int64_t>(tensor.values.size() / row_bytes);
  for (std::int64_t i = 0; i < stored; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t row = tensor.is_sampled() ? tensor.sampled_rows[at] : i;
    put_row(tensor, row, tensor.values.data() + at * row_bytes, put);
  }
}

void put_checksums(const TensorGolden& tensor, const Put& put) {
  for (std::size_t row = 0; row < tensor.row_checksums.size(); ++row) {
    put(fmt::format("    row {} xxh3 {:016x}\n", row, tensor.row_checksums[row]));
  }
}

void put_sketch(const TensorSketch& sketch, const Put& put) {
  const golden::TensorStatistics& all = sketch.statistics;
  put(fmt::format("    norm {:.9g}, mean {:.9g}\n", all.norm, all.mean));
  put(fmt::format("    least {:.9g} at {}, greatest {:.9g} at {}, {} not finite\n", all.least,
                  all.least_at, all.greatest, all.greatest_at, all.non_finite));
  for (std::size_t part = 0; part < TensorSketch::kParts; ++part) {
    const auto begin = sketch.projections.begin() + part * TensorSketch::kSigns;
    std::string line = fmt::format("    projections {}:", part);
    for (auto sum = begin; sum != begin + TensorSketch::kSigns; ++sum)
      line += fmt::format(" {:.12g}", *sum);
    put(line + "\n");
  }
}

void put_tensor(const TensorGolden& tensor, const Put& put) {
  put(fmt::format("  output {} {} [{}], strides [{}], {}, scales {}\n", tensor.name,
                  cases::name_of(tensor.dtype), fmt::join(tensor.shape, ", "),
                  fmt::join(tensor.strides, ", "), tensor.format, tensor.scale_layout));
  put(fmt::format("    xxh3 {}\n", tensor.digest));
  if (tensor.sketch) put_sketch(*tensor.sketch, put);
  put_checksums(tensor, put);
  put_values(tensor, put);
}

void put_case(const CaseGolden& golden, const Put& put) {
  put("\n");
  put(fmt::format("{}\n", golden.id));
  for (const auto& [name, text] : golden.provenance) put(fmt::format("  {}: {}\n", name, text));
  for (const auto& [name, digest] : golden.inputs) {
    put(fmt::format("  input {} xxh3 {}\n", name, digest));
  }
  for (const TensorGolden& tensor : golden.outputs) put_tensor(tensor, put);
}

}  // namespace

void write_text(const GoldenFile& file, const std::function<void(std::string_view)>& put) {
  put(fmt::format("goldens of {} on {}{}, schema {}\n", file.op, file.platform,
                  file.simulated ? " (simulated)" : "", golden::schema_of(file)));
  put(fmt::format("results {}\n", golden::results_digest(file)));
  for (const std::string& line : file.history) put(fmt::format("history: {}\n", line));
  for (const CaseGolden& golden : file.cases) put_case(golden, put);
}

}  // namespace plumb::tools
