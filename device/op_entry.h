// SPDX-License-Identifier: Apache-2.0
//
// The ops that an implementation offers, by name. The implementation is plumb's own kernels or a
// plug-in.
#pragma once

#include <plumb/ops/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace plumb::device {

struct OpEntry {
  std::string_view op;  // must point to text that is never freed
  plumb_status (*launch)(const void* params) = nullptr;
  plumb_numerics numerics = {};
  // Sets the numerics of a launch with these parameters (numerics_of in plumb_plugin.h). Null:
  // `numerics` holds for every launch.
  void (*numerics_of)(const void* params, plumb_numerics* numerics) = nullptr;

  // The implementation's values of the op's choices, as in plumb_plugin.h: "floor=1e-10 ties=even".
  std::string contract = {};

  // Whether `contract` contains this choice, such as "outputs=out".
  bool chooses(std::string_view choice) const {
    const std::string words = " " + contract + " ";
    return words.find(" " + std::string(choice) + " ") != std::string::npos;
  }

  // Functions for host state and tile plan, as in plumb_plugin.h. Null: the implementation keeps no
  // state, and makes its plan in `launch`.
  void* (*state_create)(const void* params) = nullptr;
  void (*state_destroy)(void* state) = nullptr;
  plumb_status (*plan)(const void* params) = nullptr;

  // The numerics that a launch with these parameters promises.
  plumb_numerics declared(const void* params) const {
    plumb_numerics own = numerics;
    if (numerics_of != nullptr) numerics_of(params, &own);
    return own;
  }
};

struct Implementation {
  std::string name;
  std::vector<OpEntry> entries;
};

}  // namespace plumb::device
