// SPDX-License-Identifier: Apache-2.0
//
// Several ops (the links of a chain) on one device. The stored outputs of earlier ops are inputs of
// later ones, as in a decode layer. Every op is judged against the reference on exactly the bytes
// that the device gave it.
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

// A row of an op with these parameters. Parameters that are not given have the op's defaults.
Row ad_hoc_row(const OpDefinition& op, const std::map<std::string, std::int64_t>& integers,
               const std::map<std::string, std::string>& words = {});

class OpChain {
 public:
  OpChain(std::string_view platform, const device::Conditions& conditions,
          const device::Implementation& implementation);
  ~OpChain();

  // Adds an op whose inputs are filled for `step`. Reports call it `name`. Throws BadRow for a bad
  // row, std::out_of_range for an op that the implementation lacks.
  void add(std::string name, const Row& row, const Step& step);
  // An input tensor on the host. Set it before start().
  HostTensor& input(std::string_view link, std::string_view tensor);
  // Before `link` runs, the input `tensor` is overwritten with a tensor of another link, of the
  // same size in bytes.
  void feed(std::string_view link, std::string_view tensor, std::string_view from,
            std::string_view from_tensor);
  // As feed(), for a part of the rows: rows [first, first + count) of the source's first dimension
  // are copied to rows [to_first, to_first + count). A row has as many bytes on both sides.
  struct RowRange {
    std::int64_t first = 0, to_first = 0, count = 0;
  };
  void feed_rows(std::string_view link, std::string_view tensor, std::string_view from,
                 std::string_view from_tensor, const RowRange& rows);
  // As feed(), but each row passes through a seeded linear map
  // (device/kernels/placeholders/placeholder_kernels.h). The map may change the size of the last
  // dimension, but not the number of rows.
  void project(std::string_view link, std::string_view tensor, std::string_view from,
               std::string_view from_tensor, std::uint64_t seed);

  // Uploads every input and makes every op's state. Call it once after the chain is built, and
  // again after inputs were changed.
  void start();
  // Enqueues all links in order on one stream. Outputs are poisoned before each link. May be
  // captured.
  void enqueue();
  void synchronize();
  device::Device& device() { return *device_; }
  device::Stream stream() { return stream_; }

  struct LinkVerdict {
    std::string link, op;
    std::vector<TensorReport> reports;
    std::vector<std::string> damage;  // changed inputs; in the last verdict also damaged guards
    bool passed() const;
  };
  // Reads all tensors back and judges every link. Verdicts are in the order of the links.
  std::vector<LinkVerdict> judge();
  // A tensor as the device held it at the last judge().
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
