// SPDX-License-Identifier: Apache-2.0
#include "trace/export/repro.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "cases/studies/call_rows.h"
#include "trace/known_call.h"
#include "trace/step_worker.h"

namespace plumb::trace {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // limit for all tensors of a file
constexpr std::size_t kMostLines = 25;

std::string base64(const std::vector<std::byte>& bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three =
          three << 8 | (i + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::string torch_dtype(const std::string& name) {
  static const std::map<std::string, std::string> kNames{{"bool", "bool"},
                                                         {"i8", "int8"},
                                                         {"u16", "uint16"},
                                                         {"i16", "int16"},
                                                         {"u32", "uint32"},
                                                         {"i32", "int32"},
                                                         {"u64", "uint64"},
                                                         {"i64", "int64"},
                                                         {"f16", "float16"},
                                                         {"bf16", "bfloat16"},
                                                         {"f32", "float32"},
                                                         {"f64", "float64"},
                                                         {"e4m3fn", "float8_e4m3fn"},
                                                         {"e4m3fnuz", "float8_e4m3fnuz"},
                                                         {"e5m2", "float8_e5m2"},
                                                         {"e8m0", "float8_e8m0fnu"}};
  const auto found = kNames.find(name);
  return "torch." + (found == kNames.end() ? "uint8" : found->second);
}

// A Python identifier for a name of the trace, which may hold any characters.
std::string identifier(std::string name) {
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
    name = "_" + name;
  return name;
}

std::string scalar_text(const TraceScalar& value) {
  if (const auto* word = std::get_if<std::string>(&value)) {
    std::string quoted;
    for (const char c : *word) quoted += c == '"' || c == '\\' ? '_' : c;
    return '"' + quoted + '"';
  }
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.9g}", *real);
  return fmt::format("{}", std::get<std::int64_t>(value));
}

std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : fmt::format("float(\"{}\")", value);
}

// A tensor in the Python file: its part that belongs to one row of the call, or all of it.
struct ReproTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::string made() const {
    return fmt::format("tensor({}, [{}], \"{}\")", torch_dtype(dtype), fmt::join(shape, ", "),
                       base64(bytes));
  }
  std::string zeros() const {
    return fmt::format("torch.zeros([{}], dtype={}, device=device)", fmt::join(shape, ", "),
                       torch_dtype(dtype));
  }
};

// The wrong tensor, its worst element, and the right value.
struct WrongElement {
  std::string tensor, failure;
  std::optional<cases::Mismatch> worst;
  std::int64_t row = -1;  // row of the tensor (last dimension); -1: none
};

std::optional<WrongElement> find_wrong(const cases::CallVerdict& verdict) {
  for (const cases::JudgedOutput& output : verdict.outputs) {
    const cases::TensorReport& report = output.report;
    if (report.passed()) continue;
    const cases::TensorSpec& spec = output.expected.stored->spec();
    // A tensor that was made for the verdict has other indices than the recorded tensor.
    if (spec.origin) continue;
    WrongElement wrong{
        .tensor = spec.name, .failure = report.failures.front(), .worst = report.worst};
    const auto& rows = report.wrong_rows;
    if (!rows.empty()) wrong.row = rows.front();
    if (wrong.worst && std::ranges::find(rows, wrong.worst->row) != rows.end()) {
      wrong.row = wrong.worst->row;
    } else if (wrong.row >= 0) {
      wrong.worst.reset();  // the worst element is in none of the wrong rows
    }
    return wrong;
  }
  return std::nullopt;
}

class ReproText {
 public:
  ReproText(const TraceStep& step, std::size_t index, const StepBytes& bytes)
      : step_(step),
        call_(step.calls.at(index)),
        index_(index),
        known_(call_, bytes),
        rows_(cases::CallRows::of(known_.call())) {}

  ReproAnswer make() {
    const auto wrong = find_wrong(known_.call().judge());
    if (!wrong) return {.refused = "", .why_not = "the call is not wrong", .text = ""};
    wrong_ = *wrong;
    choose_row();
    add_head();
    for (const auto& [name, tensor] : call_.before) {
      if (call_.after.contains(name)) continue;
      add(identifier(name) + " = " + part_of(name, name, tensor).made());
    }
    add_results();
    add_comparison();
    if (size_ > kMostBytes) {
      return {.refused = "",
              .why_not = fmt::format("its tensors have {} bytes, more than {}", size_, kMostBytes),
              .text = ""};
    }
    if (lines_.size() > kMostLines) {
      return {.refused = "", .why_not = fmt::format("{} lines", lines_.size()), .text = ""};
    }
    return {.refused = "", .why_not = "", .text = fmt::format("{}\n", fmt::join(lines_, "\n"))};
  }

 private:
  void add(std::string line) { lines_.push_back(std::move(line)); }

  // Chooses the row of the call that contains the wrong row of the tensor.
  void choose_row() {
    if (!rows_ || wrong_.row < 0) return;
    for (std::int64_t row = 0; row < rows_->count(); ++row) {
      for (const cases::RowSegment& part : rows_->segments(wrong_.tensor, row)) {
        if (part.row == wrong_.row) row_ = row;
      }
      if (row_) return;
    }
  }

  // `known_as`: name that the op uses for the tensor.
  ReproTensor part_of(const std::string& name, const std::string& known_as,
                      const TraceTensor& tensor) {
    ReproTensor part{.dtype = tensor.type.name, .shape = tensor.shape, .bytes = {}};
    const auto segments =
        row_ ? rows_->segments(known_as, *row_) : std::vector<cases::RowSegment>{};
    if (segments.empty()) {
      const cases::GivenTensor& given = known_.given().tensors.at(known_as);
      const auto count =
          static_cast<std::size_t>(tensor.elements()) * static_cast<std::size_t>(tensor.type.bytes);
      size_ += count;
      if (size_ <= kMostBytes) part.bytes.assign(given.data, given.data + count);
      return part;
    }
    const cases::HostTensor& host = known_.call().tensors().at(known_as);
    const std::size_t size = size_of(host.spec().dtype);
    for (const cases::RowSegment& segment : segments) {
      const std::byte* const at =
          host.bytes().data() +
          static_cast<std::size_t>(host.row_offset(segment.row) + segment.begin) * size;
      if (name == wrong_.tensor && wrong_.worst && segment.row == wrong_.worst->row) {
        place_ = static_cast<std::int64_t>(part.bytes.size() / size) + wrong_.worst->column -
                 segment.begin;
      }
      part.bytes.insert(part.bytes.end(), at, at + static_cast<std::size_t>(segment.count) * size);
    }
    size_ += part.bytes.size();
    part.shape = rows_->shape_of_row(known_as);
    return part;
  }

  void add_head() {
    const auto of = [&](const char* name) {
      const auto found = step_.provenance.find(name);
      return found == step_.provenance.end() ? std::string() : " " + found->second;
    };
    add("# " + wrong_.failure);
    add(fmt::format("# {} ({}) of{}{}, call {}/{}/{} of a trace{}. Written by plumb judge --repro.",
                    call_.op, call_.name, of("engine"), of("version"), step_.rank, step_.step,
                    index_, row_ ? fmt::format(", row {} of {}", *row_, rows_->count()) : ""));
    add("import base64, sys, torch");
    add("device = sys.argv[1] if len(sys.argv) > 1 else \"cpu\"");
    add("def tensor(dtype, shape, text):");
    add("    data = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)");
    add("    return data.view(dtype).view(shape).to(device)");
    std::vector<std::string> names, values;
    for (const auto& [name, value] : call_.scalars) {
      names.push_back(identifier(name));
      values.push_back(scalar_text(value));
    }
    if (!names.empty()) {
      add(fmt::format("{} = {}", fmt::join(names, ", "), fmt::join(values, ", ")));
    }
  }

  // If the file calls the kernel (`invoke`), outputs start with their bytes before the call, or
  // zeros.
  void add_results() {
    const bool runs = !call_.invoke.empty();
    if (!runs) add("# Call the kernel here. Until then the results are those of the engine.");
    for (const auto& [name, tensor] : call_.after) {
      ReproTensor after = part_of(name, name, tensor);
      const auto before = call_.before.find(name);
      if (!runs) {
        add(identifier(name) + " = " + after.made());
      } else if (before != call_.before.end()) {
        add(identifier(name) + " = " + part_of(name, name + "_before", before->second).made());
      } else {
        add(identifier(name) + " = " + after.zeros());
      }
    }
    if (runs) add(call_.invoke + "  # a line of the trace: read it before you run it");
  }

  void add_comparison() {
    const std::string name = identifier(wrong_.tensor);
    const TraceTensor& tensor = call_.after.at(wrong_.tensor);
    const bool codes = tensor.type.bytes == 1 && tensor.type.name != "bool";
    if (!wrong_.worst) {
      add(fmt::format("sys.exit(f\"{} is {{{}.tolist()}}\")", name, name));
      return;
    }
    if (!row_) {
      const cases::HostTensor& host = known_.call().tensors().at(wrong_.tensor);
      place_ = wrong_.worst->row * host.columns() + wrong_.worst->column;
    }
    add(fmt::format("got = {}.contiguous(){}.flatten()[{}].item()", name,
                    codes ? ".view(torch.uint8)" : "", place_));
    add(fmt::format("right, bound = {}, {}", number_text(wrong_.worst->expected),
                    number_text(wrong_.worst->bound)));
    add(fmt::format("print(f\"{}{} is {{got}}; right is {{right}}, at most {{bound}} away\")",
                    wrong_.tensor, wrong_.worst->coordinates));
    add("sys.exit(0 if abs(got - right) <= bound else 1)");
  }

  const TraceStep& step_;
  const TraceCall& call_;
  std::size_t index_;
  KnownCall known_;
  std::optional<cases::CallRows> rows_;
  WrongElement wrong_;
  std::optional<std::int64_t> row_;  // row of the call; nullopt: all rows
  std::int64_t place_ = 0;           // index of the worst element in its tensor in the file
  std::size_t size_ = 0;             // total bytes of all tensors
  std::vector<std::string> lines_;
};

}  // namespace

ReproAnswer repro_of(const TraceStep& step, std::size_t call, const StepBytes& bytes) {
  try {
    return ReproText(step, call, bytes).make();
  } catch (...) {
    return {.refused = "", .why_not = why_not_judged(), .text = ""};
  }
}

int serve_repro() {
  return serve_steps<ReproRequest, ReproAnswer>(
      [](const ReproRequest& request, ReproAnswer& answer) {
        const OpenStep open(request.path);
        answer = repro_of(open.step, static_cast<std::size_t>(request.call), open.bytes);
      });
}

}  // namespace plumb::trace
