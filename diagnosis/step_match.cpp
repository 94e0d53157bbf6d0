// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_match.h"

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

StepMatcher::StepMatcher(const StepValues& observed, StepValues right)
    : observed_(observed), right_(std::move(right)) {
  const auto is_wrong = [&](const CallValues& call) {
    return match_call(static_cast<std::size_t>(&call - right_.data()), right_).wrong > 0;
  };
  const auto first = std::find_if(right_.begin(), right_.end(), is_wrong);
  first_wrong_ = static_cast<std::size_t>(first - right_.begin());
}

Match StepMatcher::match_first(const StepValues& hypothesis) const {
  return match_up_to(first_wrong_ + 1, hypothesis);
}

Match StepMatcher::match_all(const StepValues& hypothesis) const {
  return match_up_to(right_.size(), hypothesis);
}

Match StepMatcher::match_up_to(std::size_t calls, const StepValues& hypothesis) const {
  Match all;
  for (std::size_t i = 0; i < std::min(calls, right_.size()); ++i) {
    all += match_call(i, hypothesis);
  }
  return all;
}

// If the hypothesis has no values of a call, they count as right.
Match StepMatcher::match_call(std::size_t call, const StepValues& hypothesis) const {
  Match all;
  const CallValues& wanted = right_[call];
  for (const HostTensor& tensor : wanted.tensors) {
    const HostTensor* seen = find(observed_, wanted.call, tensor);
    const HostTensor* would = find(hypothesis, wanted.call, tensor);
    if (seen != nullptr) all += match(*seen, tensor, would ? *would : tensor, Closeness::bits);
  }
  return all;
}

}  // namespace plumb::cases
