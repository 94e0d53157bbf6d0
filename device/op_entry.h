// SPDX-License-Identifier: Apache-2.0
//
// What an implementation offers: entries by op name, plumb's own kernels or a plug-in's.
#pragma once

#include <plumb/ops/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace plumb::device {

struct OpEntry {
  std::string_view op;  // lasts as long as the program
  plumb_status (*launch)(const void* params) = nullptr;
  plumb_numerics numerics = {};
  // As in plumb_plugin.h; null: `numerics` for every launch.
  void (*numerics_of)(const void* params, plumb_numerics* numerics) = nullptr;

  // Choices of the op that the implementation has made: "floor=1e-10 ties=even", as in
  // plumb_plugin.h.
  std::string contract = {};

  // Whether it has made this choice: "outputs=out".
  bool chooses(std::string_view choice) const {
    const std::string words = " " + contract + " ";
    return words.find(" " + std::string(choice) + " ") != std::string::npos;
  }

  // As in plumb_plugin.h; null: the implementation keeps no state, and plans in `launch`.
  void* (*state_create)(const void* params) = nullptr;
  void (*state_destroy)(void* state) = nullptr;
  plumb_status (*plan)(const void* params) = nullptr;

  // What a launch with these parameters promises.
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
