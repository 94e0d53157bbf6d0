// SPDX-License-Identifier: Apache-2.0
//
// A plug-in: a shared library behind plumb/plumb_plugin.h, as an implementation like plumb's own.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "device/op_entry.h"

namespace plumb::device {

// Why a file cannot be used as a plug-in: one line, which starts with the path.
class PluginError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Plugin {
 public:
  // Loads the library and reads its table. What its code does then and later (crash, never end) is
  // not contained here. One plug-in at a time; the library stays in the process for good.
  explicit Plugin(const std::string& path);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& name() const { return table_.name; }
  const std::string& version() const { return version_; }  // "" if it names none
  // Launchers throw DeviceError for an exception of the plug-in's, for a status that is none, and
  // for what a host service refused. Devices have to be HostedDevices.
  const Implementation& implementation() const { return table_; }

 private:
  std::string path_, version_;
  Implementation table_;
};

}  // namespace plumb::device
