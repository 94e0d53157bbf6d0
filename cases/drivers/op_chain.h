// SPDX-License-Identifier: Apache-2.0
//
// Several ops on one device, each fed with what the ones before it stored, as in a decode layer.
// Every op is judged against the reference on exactly the bytes that the device gave it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::cases {

// A row of an op with these parameters; what is left out has the op's defaults.
Row ad_hoc_row(const OpDefinition& op, const std::map<std::string, std::int64_t>& integers,
               const std::map<std::string, std::string>& words = {});

class OpChain {
 public:
  OpChain(std::string_view platform, const device::Conditions& conditions,
          const device::Implementation& implementation);
  ~OpChain();

  // Adds an op, its inputs as `step` fills them. `name` stands in reports. Throws BadRow for a bad
  // row, std::out_of_range for an op that the implementation lacks.
  void add(std::string name, const Row& row, const Step& step);
  // An input on the host, to be set before start().
  HostTensor& input(std::string_view link, std::string_view tensor);
  // Before `link` runs, its input gets the bytes of another link's tensor, which has as many.
  void feed(std::string_view link, std::string_view tensor, std::string_view from,
            std::string_view from_tensor);
  // Only some: `count` rows of the first dimension from `first` on go to `to_first` and behind.
  // Rows have as many bytes on both sides.
  struct RowRange {
    std::int64_t first = 0, to_first = 0, count = 0;
  };
  void feed_rows(std::string_view link, std::string_view tensor, std::string_view from,
                 std::string_view from_tensor, const RowRange& rows);
  // The same through a seeded linear map of the rows
  // (device/kernels/placeholders/placeholder_kernels.h): the last dimension may change, the number
  // of rows may not.
  void project(std::string_view link, std::string_view tensor, std::string_view from,
               std::string_view from_tensor, std::uint64_t seed);

  // Uploads every input. Once, after the chain is built; again when inputs were changed.
  void start();
  // Enqueues all links in order on one stream; outputs are poisoned before each. May be captured.
  void enqueue();
  void synchronize();
  device::Device& device() { return *device_; }
  device::Stream stream() { return stream_; }

  struct LinkVerdict {
    std::string link, op;
    std::vector<TensorReport> reports;
    std::vector<std::string> damage;  // inputs changed, guards damaged
    bool passed() const;
  };
  // Reads everything back; one verdict per link, in order.
  std::vector<LinkVerdict> judge();
  // What the device holds of a tensor, after judge().
  const HostTensor& stored(std::string_view link, std::string_view tensor) const;

 private:
  struct Link;
  Link& find(std::string_view name);
  const Link& find(std::string_view name) const;
  void upload(Link& link);
  void reset_outputs(const Link& link);
  void download(Link& link, LinkVerdict& verdict);

  std::unique_ptr<device::Device> device_;
  const device::Implementation& implementation_;
  const device::OpEntry& linear_map_;
  device::Stream stream_ = nullptr;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace plumb::cases
