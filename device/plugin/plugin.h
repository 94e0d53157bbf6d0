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
  // Loads the library and reads its table. Crashes and endless loops of its code are not contained
  // here. One plug-in at a time; the library is never unloaded.
  explicit Plugin(const std::string& path);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& name() const { return table_.name; }
  const std::string& version() const { return version_; }  // "" if it names none
  // Launchers throw DeviceError if the plug-in throws or returns an unknown status, or if a host
  // service refused one of its calls. Devices have to be HostedDevices.
  const Implementation& implementation() const { return table_; }

 private:
  std::string path_, version_;
  Implementation table_;
};

}  // namespace plumb::device
