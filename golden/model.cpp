// SPDX-License-Identifier: Apache-2.0
#include "golden/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>

namespace plumb::golden {

namespace {

using hdf5::is_digest;

void require(bool holds, std::string_view where, std::string_view what) {
  if (!holds) throw GoldenError(fmt::format("{}: {}", where, what));
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() < 256 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

void validate_rows(const TensorGolden& tensor, std::string_view where) {
  const std::size_t row_bytes = tensor.row_bytes();
  if (!tensor.is_sampled()) {
    require(tensor.sampled_rows.empty(), where, "sampled rows without row checksums");
    require(tensor.values.size() == static_cast<std::size_t>(tensor.rows()) * row_bytes, where,
            "not as many values as the shape says");
    require(digest_of(tensor.values) == tensor.digest, where,
            "the digest is not that of the values");
    return;
  }
  require(tensor.row_checksums.size() == static_cast<std::size_t>(tensor.rows()), where,
          "not as many row checksums as rows");
  require(tensor.values.size() == tensor.sampled_rows.size() * row_bytes, where,
          "not as many values as the sampled rows have");
  std::int64_t last = -1;
  for (std::size_t i = 0; i < tensor.sampled_rows.size(); ++i) {
    const std::int64_t row = tensor.sampled_rows[i];
    require(row > last && row < tensor.rows(), where, "sampled rows out of order or range");
    last = row;
    const std::uint64_t checksum = XXH3_64bits(tensor.values.data() + i * row_bytes, row_bytes);
    require(checksum == tensor.row_checksums[static_cast<std::size_t>(row)], where,
            fmt::format("row {} does not have its checksum", row));
  }
}

void validate_sketch(const TensorGolden& tensor, std::string_view where) {
  require(tensor.is_sampled(), where, "a sketch of values that are all stored");
  const TensorStatistics& all = tensor.sketch->statistics;
  const std::int64_t elements = tensor.elements();
  require(all.non_finite >= 0 && all.non_finite <= elements, where,
          "more elements that are not finite than there are");
  const std::int64_t first = all.non_finite == elements ? -1 : 0;
  const std::int64_t last = all.non_finite == elements ? -1 : elements - 1;
  for (const std::int64_t at : {all.least_at, all.greatest_at}) {
    require(at >= first && at <= last, where, "an extreme is no element");
  }
  for (const double value : {all.mean, all.norm, all.least, all.greatest}) {
    require(std::isfinite(value), where, "a statistic is not finite");
  }
  require(all.norm >= 0 && all.least <= all.greatest, where, "statistics that nothing has");
  for (const double value : tensor.sketch->projections) {
    require(std::isfinite(value), where, "a projection is not finite");
  }
}

// Checks a text that is printed unchanged.
void validate_text(std::string_view text, std::string_view where) {
  require(text.size() <= Limits::text_bytes, where, "a text is too long");
  const bool control =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  require(!control, where, "a control character in a text");
}

bool is_platform(std::string_view text) {
  const std::size_t dash = text.find('-');
  return dash != std::string_view::npos && is_plain_name(text.substr(0, dash)) &&
         is_plain_name(text.substr(dash + 1));
}

void validate(const CaseGolden& golden, const GoldenFile& file) {
  const std::string& where = golden.id;
  const std::size_t first = where.find('/'), last = where.rfind('/');
  require(first != std::string::npos && last != first && where.substr(0, first) == file.op &&
              is_plain_name(where.substr(first + 1, last - first - 1)) &&
              is_plain_name(where.substr(last + 1)),
          where, fmt::format("not a case of {}", file.op));
  require(golden.outputs.size() <= Limits::outputs && !golden.outputs.empty(), where,
          "no outputs, or too many");
  for (const auto& [name, text] : golden.provenance) {
    require(is_plain_name(name), where, "an attribute of another name");
    validate_text(text, where);
  }
  for (const auto& [name, digest] : golden.inputs) {
    require(is_plain_name(name) && is_digest(digest), where, "an input has no digest");
  }
  for (const TensorGolden& tensor : golden.outputs) {
    const std::string here = where + "/" + tensor.name;
    require(is_plain_name(tensor.name), where, "an output has no plain name");
    require(is_digest(tensor.digest), here, "no digest");
    validate_text(tensor.format, here);
    validate_text(tensor.scale_layout, here);
    validate_shape(tensor, here);
    validate_rows(tensor, here);
    if (tensor.sketch) validate_sketch(tensor, here);
  }
}

}  // namespace

std::int64_t TensorGolden::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::size_t TensorGolden::row_bytes() const {
  return static_cast<std::size_t>(columns()) * cases::size_of(dtype);
}

const CaseGolden* GoldenFile::find(std::string_view id) const {
  const auto found =
      std::lower_bound(cases.begin(), cases.end(), id,
                       [](const CaseGolden& a, std::string_view b) { return a.id < b; });
  return found != cases.end() && found->id == id ? &*found : nullptr;
}

std::int64_t schema_of(const GoldenFile& file) {
  for (const CaseGolden& golden : file.cases) {
    for (const TensorGolden& tensor : golden.outputs) {
      if (tensor.sketch) return 2;
    }
  }
  return 1;
}

std::string results_digest(const CaseGolden& golden) {
  std::string text = golden.id + "\n";
  for (const auto& [name, digest] : golden.inputs) text += fmt::format("{} {}\n", name, digest);
  for (const TensorGolden& t : golden.outputs) {
    text +=
        fmt::format("{} {} {} {} {} {} {}\n", t.name, cases::name_of(t.dtype), t.format,
                    t.scale_layout, fmt::join(t.shape, "x"), fmt::join(t.strides, ","), t.digest);
  }
  return digest_of(text);
}

std::string results_digest(const GoldenFile& file) {
  std::string text = file.platform + "\n" + file.op + "\n";
  for (const CaseGolden& golden : file.cases) text += results_digest(golden) + "\n";
  return digest_of(text);
}

// Limits the number of elements to what a kernel could write, so that products cannot overflow.
void validate_shape(const TensorGolden& tensor, std::string_view where) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  require(tensor.shape.size() <= Limits::rank, where, "too many dimensions");
  require(tensor.strides.size() == tensor.shape.size(), where, "strides and shape do not match");
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) {
    require(size >= 0 && size <= kMost, where, "a dimension is out of range");
    require(elements == 0 || size <= kMost / elements, where, "too many elements");
    elements *= size;
  }
}

void validate(const GoldenFile& file) {
  require(is_plain_name(file.op), file.op, "not an op's name");
  require(is_platform(file.platform), file.op, "not a platform's name");
  require(file.cases.size() <= Limits::cases, file.op, "too many cases");
  require(file.history.size() <= Limits::history, file.op, "too long a history");
  for (const std::string& line : file.history) validate_text(line, file.op + "/history");
  for (std::size_t i = 0; i < file.cases.size(); ++i) {
    require(i == 0 || file.cases[i - 1].id < file.cases[i].id, file.cases[i].id,
            "cases out of order");
    validate(file.cases[i], file);
  }
}

}  // namespace plumb::golden
