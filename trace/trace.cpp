// SPDX-License-Identifier: Apache-2.0
//
// Parses the JSON text of a step. Every member is checked before use, because the text may hold
// anything.
#include "trace/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "hdf5/digest.h"

namespace plumb::trace {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMostDimensions = 8;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

const std::array<ElementType, 19> kTypes{{{"bool", 1},
                                          {"u8", 1},
                                          {"i8", 1},
                                          {"u16", 2},
                                          {"i16", 2},
                                          {"u32", 4},
                                          {"i32", 4},
                                          {"u64", 8},
                                          {"i64", 8},
                                          {"f16", 2},
                                          {"bf16", 2},
                                          {"f32", 4},
                                          {"f64", 8},
                                          {"e4m3fn", 1},
                                          {"e4m3fnuz", 1},
                                          {"e5m2", 1},
                                          {"e8m0", 1},
                                          {"e2m1x2", 1},
                                          {"packed", 1}}};

// Replaces control characters, because names are printed and a terminal executes control sequences.
std::string printable(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// A JSON value and its path for messages, such as "calls[3].before.x".
class Node {
 public:
  Node(const Json& value, std::string where) : value_(value), where_(std::move(where)) {}

  [[noreturn]] void refuse(std::string_view what) const {
    throw BadTrace(fmt::format("{}: {}", where_, what));
  }

  std::optional<Node> find(const char* name) const {
    const auto found = value_.find(name);
    if (found == value_.end() || found->is_null()) return std::nullopt;
    return Node(*found, fmt::format("{}.{}", where_, name));
  }
  Node at(const char* name) const {
    if (const auto found = find(name)) return *found;
    refuse(fmt::format("no member \"{}\"", name));
  }
  void require_object() const {
    if (!value_.is_object()) refuse("not an object");
  }

  std::int64_t integer(std::int64_t least = std::numeric_limits<std::int64_t>::min()) const {
    const bool fits = value_.is_number_integer() &&
                      (!value_.is_number_unsigned() ||
                       value_.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
    if (!fits) refuse("not an integer of 64 bits");
    const auto number = value_.get<std::int64_t>();
    if (number < least) refuse(fmt::format("is {}, less than {}", number, least));
    return number;
  }
  bool boolean() const {
    if (!value_.is_boolean()) refuse("not true or false");
    return value_.get<bool>();
  }
  std::string text() const {
    if (!value_.is_string()) refuse("not a text");
    return printable(value_.get<std::string>());
  }
  TraceScalar scalar() const {
    if (value_.is_boolean()) return std::int64_t{value_.get<bool>()};
    if (value_.is_string()) return text();
    if (value_.is_number_float()) return value_.get<double>();
    return integer();
  }
  std::vector<std::int64_t> integers(std::size_t most, std::int64_t least) const {
    std::vector<std::int64_t> all;
    for_each_element(most, [&](const Node& one) { all.push_back(one.integer(least)); });
    return all;
  }

  void for_each_element(std::size_t most, const auto& visit) const {
    if (!value_.is_array()) refuse("not a list");
    if (value_.size() > most) refuse("too long a list");
    for (std::size_t i = 0; i < value_.size(); ++i) {
      visit(Node(value_[i], fmt::format("{}[{}]", where_, i)));
    }
  }
  void for_each_member(const auto& visit) const {
    require_object();
    for (const auto& [key, value] : value_.items()) {
      const std::string name = printable(key);
      visit(name, Node(value, fmt::format("{}.{}", where_, name)));
    }
  }

 private:
  const Json& value_;
  std::string where_;
};

std::int64_t product_of(const std::vector<std::int64_t>& shape, const Node& where) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    if (size != 0 && product > kMostElements / size) where.refuse("too many elements");
    product *= size;
  }
  return product;
}

void read_blocks(const Node& node, TraceTensor& tensor) {
  const auto listed = node.find("blocks");
  if (!listed) return;
  if (tensor.shape.empty()) node.refuse("blocks of a tensor without dimensions");
  tensor.blocks = listed->integers(std::size_t{1} << 24, 0);
  std::int64_t last = -1;
  for (const std::int64_t block : *tensor.blocks) {
    if (block <= last || block >= tensor.shape.front()) {
      listed->refuse("not ascending numbers of blocks within the tensor");
    }
    last = block;
  }
}

TraceTensor read_tensor(const Node& node) {
  node.require_object();
  TraceTensor tensor;
  const auto type = element_type(node.at("dtype").text());
  if (!type) node.at("dtype").refuse("no dtype of traces");
  tensor.type = *type;
  tensor.shape = node.at("shape").integers(kMostDimensions, 0);
  product_of(tensor.shape, node);
  constexpr std::int64_t kFurthest = std::int64_t{1} << 48;
  if (const auto strides = node.find("strides")) {
    tensor.strides = strides->integers(kMostDimensions, -kFurthest);
    if (tensor.strides.size() != tensor.shape.size()) strides->refuse("not one for each dimension");
  }
  if (const auto storage = node.find("storage")) {
    tensor.storage = static_cast<std::uint64_t>(storage->integer(0));
  }
  if (const auto offset = node.find("offset")) tensor.offset = offset->integer(0);
  if (const auto data = node.find("data")) {
    tensor.data = data->text();
    if (!hdf5::is_digest(tensor.data)) data->refuse("not a digest");
  }
  read_blocks(node, tensor);
  return tensor;
}

TraceTensors read_tensors(const Node& call, const char* name) {
  TraceTensors tensors;
  const auto node = call.find(name);
  if (!node) return tensors;
  node->for_each_member([&](const std::string& tensor, const Node& one) {
    tensors.emplace(tensor, read_tensor(one));
  });
  return tensors;
}

std::map<std::string, TraceScalar> read_scalars(const Node& call, const char* name) {
  std::map<std::string, TraceScalar> scalars;
  const auto node = call.find(name);
  if (!node) return scalars;
  node->for_each_member(
      [&](const std::string& scalar, const Node& one) { scalars.emplace(scalar, one.scalar()); });
  return scalars;
}

TraceKernel read_kernel(const Node& node) {
  node.require_object();
  TraceKernel kernel{.name = node.at("name").text(), .grid = {}};
  if (const auto grid = node.find("grid")) kernel.grid = grid->integers(3, 0);
  return kernel;
}

void read_ranks(const Node& node, TraceCall& call) {
  constexpr std::size_t kMostRows = std::size_t{1} << 24, kMostRanks = 4096, kMostNames = 256;
  if (const auto rows = node.find("rows")) call.rows = rows->integers(kMostRows, 0);
  if (const auto collective = node.find("collective")) call.collective = collective->text();
  if (const auto group = node.find("group")) {
    call.group = group->integers(kMostRanks, 0);
    const std::set<std::int64_t> different(call.group.begin(), call.group.end());
    if (different.size() != call.group.size()) group->refuse("names a rank twice");
  }
  if (const auto names = node.find("replicated")) {
    names->for_each_element(kMostNames,
                            [&](const Node& one) { call.replicated.push_back(one.text()); });
  }
}

// `ended`: number of calls before this one in the list.
TraceCall read_call(const Node& node, std::int64_t ended) {
  node.require_object();
  TraceCall call;
  if (const auto op = node.find("op")) call.op = op->text();
  call.name = node.find("name") ? node.at("name").text() : call.op;
  if (call.name.empty()) node.refuse("neither \"op\" nor \"name\"");
  if (const auto layer = node.find("layer")) call.layer = layer->integer(-1);
  if (const auto stream = node.find("stream")) call.stream = stream->integer();
  if (const auto replay = node.find("replay")) call.replay = replay->integer(0);
  if (const auto invoke = node.find("invoke")) call.invoke = invoke->text();
  call.began = ended;
  if (const auto began = node.find("began")) {
    call.began = began->integer(0);
    if (call.began > ended) began->refuse("more calls than had ended");
  }
  if (const auto kernels = node.find("kernels")) {
    kernels->for_each_element(4096,
                              [&](const Node& one) { call.kernels.push_back(read_kernel(one)); });
  }
  call.scalars = read_scalars(node, "scalars");
  call.numerics = read_scalars(node, "numerics");
  read_ranks(node, call);
  call.before = read_tensors(node, "before");
  call.after = read_tensors(node, "after");
  return call;
}

}  // namespace

std::optional<ElementType> element_type(const std::string& name) {
  for (const ElementType& type : kTypes) {
    if (type.name == name) return type;
  }
  return std::nullopt;
}

std::int64_t TraceTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string TraceTensor::coordinates(std::int64_t place) const {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = at.size(); i-- > 0;) {
    const std::int64_t size = i == 0 ? place + 1 : shape[i];
    at[i] = place % size;
    place /= size;
  }
  if (blocks && !at.empty()) at[0] = (*blocks)[static_cast<std::size_t>(at[0])];
  return fmt::format("[{}]", fmt::join(at, ", "));
}

std::size_t TraceTensor::stored_bytes() const {
  std::int64_t stored = elements();
  if (blocks && stored != 0) stored = stored / shape.front() * std::ssize(*blocks);
  return static_cast<std::size_t>(stored) * static_cast<std::size_t>(type.bytes);
}

TraceStep parse_step(const std::string& text, const std::string& where) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw BadTrace(where + ": not JSON");
  const Node root(json, where);
  root.require_object();
  if (!root.find("format") || root.at("format").text() != "plumb trace") {
    root.refuse("not a trace of plumb");
  }
  const std::int64_t version = root.at("version").integer();
  if (version != kVersion) {
    root.refuse(fmt::format("version {} of the format; this plumb reads {}", version, kVersion));
  }
  TraceStep step{.rank = root.at("rank").integer(0), .step = root.at("step").integer(0)};
  if (const auto complete = root.find("complete")) step.complete = complete->boolean();
  if (const auto provenance = root.find("provenance")) {
    provenance->for_each_member([&](const std::string& name, const Node& one) {
      step.provenance.emplace(name, one.text());
    });
  }
  constexpr std::size_t kMostCalls = 1000000;
  root.at("calls").for_each_element(kMostCalls, [&](const Node& one) {
    step.calls.push_back(read_call(one, std::ssize(step.calls)));
  });
  return step;
}

}  // namespace plumb::trace
