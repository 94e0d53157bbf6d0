// SPDX-License-Identifier: Apache-2.0
//
// Copies of what every call of a decode step reads and writes, taken on the stream around the call.
// A step that is captured with them is a twin of the plain one: after its replay the intermediates
// that the graph itself has overwritten are still there, and each op is judged against the
// reference on exactly the bytes that it was given.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/decode/call_record.h"
#include "cases/problem.h"
#include "device/decode/memory.h"

namespace plumb::cases {

class Taps final : public device::decode::CallObserver {
 public:
  // Both outlive the taps.
  Taps(device::Device& device, const device::decode::Geometry& geometry,
       const plumb_implementation& ops);
  ~Taps() override;

  void begin(std::string_view part, std::int64_t tokens) override;
  void begin_varying(std::string_view part) override;
  void before(const device::decode::Call& call, device::Stream stream) override;
  void after(const device::decode::Call& call, device::Stream stream) override;

  struct Verdict {
    std::string call, op;
    std::vector<TensorReport> reports;
    bool passed() const;
  };
  // Of the latest run of a part padded to so many tokens; its work is over. Reads everything back.
  std::vector<Verdict> judge(const std::string& part, std::int64_t tokens);
  // Of the latest run of a part that varies.
  std::vector<Verdict> judge_varying(const std::string& part);

 private:
  struct Tap;
  using Calls = std::vector<std::unique_ptr<Tap>>;

  std::unique_ptr<Tap> make_tap(const device::decode::Call& call);
  void copy(const Tap& tap, bool before, device::Stream stream);
  std::vector<Verdict> judge(const Calls& calls);
  Verdict judge(Tap& tap);

  device::Device& device_;
  const device::decode::Geometry& geometry_;
  const plumb_implementation& ops_;
  device::Stream stream_;  // for reading back
  std::map<std::pair<std::string, std::int64_t>, Calls> parts_;
  std::map<std::string, Calls, std::less<>> varying_;
  Calls retired_;  // of earlier runs of a part that varies, whose work may be pending
  Calls* current_ = nullptr;
  std::size_t next_ = 0;  // call of the part
};

}  // namespace plumb::cases
