// SPDX-License-Identifier: Apache-2.0
#include "cases/diagnosis/step_match.h"

#include <algorithm>
#include <utility>

namespace plumb::cases {

namespace {

const HostTensor* find(const StepValues& values, const std::string& call, const HostTensor& like) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const CallValues& one) { return one.call == call; });
  if (found == values.end()) return nullptr;
  const auto tensor =
      std::find_if(found->tensors.begin(), found->tensors.end(), [&](const HostTensor& one) {
        return one.spec().name == like.spec().name && one.bytes().size() == like.bytes().size();
      });
  return tensor == found->tensors.end() ? nullptr : &*tensor;
}

}  // namespace

StepMatcher::StepMatcher(const StepValues& observed, StepValues right, Closeness closeness)
    : observed_(observed), right_(std::move(right)), closeness_(closeness) {
  while (first_wrong_ < right_.size()) {
    Match here;
    const CallValues& call = right_[first_wrong_];
    for (const HostTensor& tensor : call.tensors) {
      const HostTensor* seen = find(observed_, call.call, tensor);
      if (seen != nullptr) here += match(*seen, tensor, tensor, closeness_);
    }
    if (here.wrong > 0) break;
    ++first_wrong_;
  }
}

Match StepMatcher::match_first(const StepValues& hypothesis) const {
  return match_up_to(first_wrong_ + 1, hypothesis);
}

Match StepMatcher::match_all(const StepValues& hypothesis) const {
  return match_up_to(right_.size(), hypothesis);
}

// A call that a hypothesis does not have is as it should be.
Match StepMatcher::match_up_to(std::size_t calls, const StepValues& hypothesis) const {
  Match all;
  for (std::size_t i = 0; i < std::min(calls, right_.size()); ++i) {
    for (const HostTensor& tensor : right_[i].tensors) {
      const HostTensor* seen = find(observed_, right_[i].call, tensor);
      const HostTensor* would = find(hypothesis, right_[i].call, tensor);
      if (seen != nullptr) all += match(*seen, tensor, would ? *would : tensor, closeness_);
    }
  }
  return all;
}

}  // namespace plumb::cases
