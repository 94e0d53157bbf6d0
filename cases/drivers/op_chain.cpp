// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/op_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cases/drivers/run.h"
#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::cases {

namespace {

constexpr Poison kPoisonOfOutputs = Poison::nan;

const device::OpEntry& entry_of(const device::Implementation& implementation, std::string_view op) {
  if (const device::OpEntry* entry = device::find_entry(implementation, op)) return *entry;
  throw std::out_of_range(fmt::format("{} has no {}", implementation.name, op));
}

plumb_format format_of(const TensorSpec& spec) {
  if (spec.dtype == Dtype::bf16) return PLUMB_BF16;
  if (spec.dtype == Dtype::f32) return PLUMB_F32;
  throw std::invalid_argument(
      fmt::format("{} is {}: only bf16 and f32 are projected", spec.name, name_of(spec.dtype)));
}

}  // namespace

// Where an input, or some rows of it, come from.
struct Feed {
  std::string tensor;
  // Source tensor, used for its shape; its bytes are on the device.
  const HostTensor* from = nullptr;
  const std::byte* address = nullptr;
  std::size_t to_offset = 0, bytes = 0;  // place in the destination input, unless projected
  bool projected = false;
  std::uint64_t seed = 0;
};

std::size_t bytes_of_row(const HostTensor& tensor) {
  const TensorSpec& spec = tensor.spec();
  return static_cast<std::size_t>(spec.strides.front()) * size_of(spec.dtype);
}

struct OpChain::Link {
  std::string name;
  const device::OpEntry* entry = nullptr;
  std::unique_ptr<Problem> problem;
  Step step;
  TensorSet host;    // inputs as set on the host
  TensorSet stored;  // device contents at the last judge()
  DeviceTensors addresses;
  std::unique_ptr<OpState> state;
  std::vector<Feed> feeds;

  bool is_fed(std::string_view tensor) const {
    return std::any_of(feeds.begin(), feeds.end(),
                       [&](const Feed& feed) { return feed.tensor == tensor; });
  }
};

Row ad_hoc_row(const OpDefinition& op, const std::map<std::string, std::int64_t>& integers,
               const std::map<std::string, std::string>& words) {
  Row row;
  row.op = std::string(op.name);
  row.name = "ad_hoc";
  row.where = "an ad-hoc row";
  for (const Parameter& p : op.parameters) row.integers[std::string(p.name)] = p.default_value;
  for (const auto& [name, value] : integers) {
    if (!row.integers.contains(name)) {
      throw BadRow(fmt::format("{} has no parameter {}", op.name, name));
    }
    row.integers[name] = value;
  }
  for (const auto& [name, value] : words) {
    op.check_word(name, value, row.where);
    row.words[name] = value;
  }
  return row;
}

OpChain::OpChain(std::string_view platform, const device::Conditions& conditions,
                 const device::Implementation& implementation)
    : device_(device::open_device(platform, conditions)),
      implementation_(implementation),
      linear_map_(entry_of(device::builtin_implementation(platform), "linear_map")),
      stream_(device_->create_stream()) {}

OpChain::~OpChain() = default;

void OpChain::add(std::string name, const Row& row, const Step& step) {
  auto link = std::make_unique<Link>();
  link->name = std::move(name);
  link->entry = &entry_of(implementation_, row.op);
  link->problem = find_op(row.op).make_problem(row, device_->properties());
  link->step = step;
  link->host = link->problem->make_tensors();
  link->problem->fill(step, link->host);
  for (const HostTensor& tensor : link->host.all()) {
    const TensorSpec& spec = tensor.spec();
    const std::size_t bytes = std::max<std::size_t>(device_bytes(tensor), 1);
    const std::string label = link->name + "." + spec.name;
    link->addresses.set(spec.name, spec.sparse ? device_->allocate_sparse(bytes, label)
                                               : device_->allocate(bytes, label));
  }
  links_.push_back(std::move(link));
}

OpChain::Link& OpChain::find(std::string_view name) {
  for (const auto& link : links_) {
    if (link->name == name) return *link;
  }
  throw std::out_of_range(fmt::format("the chain has no {}", name));
}

const OpChain::Link& OpChain::find(std::string_view name) const {
  return const_cast<OpChain*>(this)->find(name);
}

HostTensor& OpChain::input(std::string_view link, std::string_view tensor) {
  return find(link).host.at(tensor);
}

void OpChain::feed(std::string_view link, std::string_view tensor, std::string_view from,
                   std::string_view from_tensor) {
  Link& to = find(link);
  const Link& source = find(from);
  const HostTensor& there = source.host.at(from_tensor);
  if (to.host.at(tensor).bytes().size() != there.bytes().size()) {
    throw std::invalid_argument(fmt::format("{}.{} has {} bytes, {}.{} has {}", link, tensor,
                                            to.host.at(tensor).bytes().size(), from, from_tensor,
                                            there.bytes().size()));
  }
  to.feeds.push_back({.tensor = std::string(tensor),
                      .from = &there,
                      .address = source.addresses.get<std::byte>(from_tensor),
                      .bytes = there.bytes().size()});
}

void OpChain::feed_rows(std::string_view link, std::string_view tensor, std::string_view from,
                        std::string_view from_tensor, const RowRange& rows) {
  Link& to = find(link);
  const Link& source = find(from);
  const HostTensor& there = source.host.at(from_tensor);
  const HostTensor& here = to.host.at(tensor);
  const std::size_t bytes = bytes_of_row(there);
  if (bytes != bytes_of_row(here) || rows.first + rows.count > there.spec().shape.front() ||
      rows.to_first + rows.count > here.spec().shape.front()) {
    throw std::invalid_argument(fmt::format("{}.{} <- {}.{}: rows of {} and {} bytes, or too few",
                                            link, tensor, from, from_tensor, bytes_of_row(here),
                                            bytes));
  }
  to.feeds.push_back({.tensor = std::string(tensor),
                      .from = &there,
                      .address = source.addresses.get<std::byte>(from_tensor) +
                                 static_cast<std::size_t>(rows.first) * bytes,
                      .to_offset = static_cast<std::size_t>(rows.to_first) * bytes,
                      .bytes = static_cast<std::size_t>(rows.count) * bytes});
}

void OpChain::project(std::string_view link, std::string_view tensor, std::string_view from,
                      std::string_view from_tensor, std::uint64_t seed) {
  Link& to = find(link);
  const Link& source = find(from);
  const HostTensor& there = source.host.at(from_tensor);
  const HostTensor& here = to.host.at(tensor);
  format_of(there.spec());
  format_of(here.spec());
  if (here.extent() != here.elements() || there.extent() != there.elements()) {
    throw std::invalid_argument(fmt::format("{}.{} <- {}.{}: only contiguous tensors are projected",
                                            link, tensor, from, from_tensor));
  }
  to.feeds.push_back({.tensor = std::string(tensor),
                      .from = &there,
                      .address = source.addresses.get<std::byte>(from_tensor),
                      .projected = true,
                      .seed = seed});
}

void OpChain::start() {
  for (const auto& link : links_) {
    upload(*link);
    link->state = link->problem->make_state(link->addresses);
  }
}

void OpChain::upload(Link& link) {
  for (const HostTensor& tensor : link.host.all()) {
    if (tensor.spec().role != Role::input || tensor.bytes().empty()) continue;
    auto* to = link.addresses.get<std::byte>(tensor.spec().name);
    for_each_piece(tensor, [&](std::size_t there, std::size_t here, std::size_t bytes) {
      device_->copy(to + there, tensor.bytes().data() + here, bytes, stream_);
    });
  }
}

void OpChain::reset_outputs(const Link& link) {
  for (const HostTensor& tensor : link.host.all()) {
    const TensorSpec& spec = tensor.spec();
    const bool written = spec.role == Role::output || spec.role == Role::scratch;
    if (!written || tensor.bytes().empty()) continue;
    void* to = link.addresses.get<void>(spec.name);
    if (spec.starts_as.empty()) {
      device_->fill(to, static_cast<std::uint8_t>(kPoisonOfOutputs), tensor.bytes().size(),
                    stream_);
    } else {
      device_->copy(to, link.addresses.get<void>(spec.starts_as), tensor.bytes().size(), stream_);
    }
  }
}

void OpChain::enqueue() {
  for (const auto& link : links_) {
    for (const Feed& feed : link->feeds) {
      const HostTensor& tensor = link->host.at(feed.tensor);
      auto* to = link->addresses.get<std::byte>(feed.tensor);
      if (!feed.projected) {
        device_->copy(to + feed.to_offset, feed.address, feed.bytes, stream_);
        continue;
      }
      // The map works per row of the source's first dimension, even if the input counts its rows
      // differently.
      const std::int64_t rows = feed.from->spec().shape.front();
      const plumb_linear_map_params map{.in = feed.address,
                                        .out = to,
                                        .rows = rows,
                                        .in_columns = feed.from->elements() / rows,
                                        .out_columns = tensor.elements() / rows,
                                        .in_format = format_of(feed.from->spec()),
                                        .out_format = format_of(tensor.spec()),
                                        .seed = feed.seed,
                                        .stream = stream_};
      if (linear_map_.launch(&map) != PLUMB_OK) {
        throw std::runtime_error(link->name + ": the projection was refused");
      }
    }
    reset_outputs(*link);
    if (link->problem->launch(*link->entry, link->addresses, link->state.get(), stream_) !=
        PLUMB_OK) {
      throw std::runtime_error(link->name + ": the implementation refused the call");
    }
  }
}

void OpChain::synchronize() { device_->synchronize(stream_); }

void OpChain::download(Link& link, LinkVerdict& verdict) {
  link.stored = link.host;
  for (HostTensor& tensor : link.stored.all()) {
    if (tensor.bytes().empty()) continue;
    const std::string& name = tensor.spec().name;
    const auto* from = link.addresses.get<std::byte>(name);
    for_each_piece(tensor, [&](std::size_t there, std::size_t here, std::size_t bytes) {
      device_->copy(tensor.bytes().data() + here, from + there, bytes, stream_);
    });
    if (tensor.spec().role != Role::input || link.is_fed(name)) continue;
    if (tensor.bytes() != link.host.at(name).bytes()) {
      verdict.damage.push_back(name + ": input changed");
    }
  }
}

std::vector<OpChain::LinkVerdict> OpChain::judge() {
  std::vector<LinkVerdict> verdicts;
  for (const auto& link : links_) {
    LinkVerdict verdict{link->name, std::string(link->entry->op), {}, {}};
    download(*link, verdict);
    verdict.reports = link->problem->judge(
        link->step, link->stored, to_reference(link->entry->numerics), link->entry->numerics);
    verdicts.push_back(std::move(verdict));
  }
  for (const device::GuardDamage& damage : device_->check_guards()) {
    verdicts.back().damage.push_back(damage.label + ": guard zone damaged");
  }
  return verdicts;
}

const HostTensor& OpChain::stored(std::string_view link, std::string_view tensor) const {
  return find(link).stored.at(tensor);
}

bool OpChain::LinkVerdict::passed() const {
  return damage.empty() && std::all_of(reports.begin(), reports.end(),
                                       [](const TensorReport& r) { return r.passed(); });
}

}  // namespace plumb::cases
