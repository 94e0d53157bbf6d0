// SPDX-License-Identifier: Apache-2.0
#include "tools/own_ops_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include "cases/own_op/own_op_messages.h"
#include "cases/tables/registry.h"
#include "device/plugin/known_ops.h"
#include "device/remote/python_process.h"
#include "process/codec_fields.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using cases::OwnOp;
using cases::OwnOpAnswer;
using cases::OwnOpRequest;
using cases::OwnOpsOfFile;
using process::Death;

// The worker process of one file. Thread-safe.
class OwnOpsProcess {
 public:
  explicit OwnOpsProcess(std::string path)
      : path_(std::move(path)),
        python_(device::remote::python_interpreter()),
        worker_({.words = device::remote::python_command(
                     python_, "plumb_kernels._ops",
                     {fmt::format("{:x}", device::interface_digest()), path_}),
                 .role = cases::kOwnOpsRole}) {}

  std::vector<OwnOp> declarations() {
    const auto answer = ask<OwnOpsOfFile>(cases::kOwnDeclarations, nullptr);
    if (const auto* death = std::get_if<Death>(&answer)) {
      const std::string why = device::remote::why_no_python(python_);
      throw UsageError(fmt::format("{}: {}", path_, why.empty() ? death->why : why));
    }
    const auto& told = std::get<OwnOpsOfFile>(answer);
    if (!told.refused.empty()) throw UsageError(told.refused);
    return told.ops;
  }

  std::vector<cases::OwnResult> results(const std::string& op, const cases::OwnCall& call) {
    auto answer = ask<OwnOpAnswer>(op, OwnOpRequest{op, call});
    if (const auto* death = std::get_if<Death>(&answer)) {
      throw cases::BadRow(fmt::format("{}: the reference of {}: {}", path_, op, death->why));
    }
    auto& told = std::get<OwnOpAnswer>(answer);
    if (!told.refused.empty()) throw cases::BadRow(fmt::format("{}: {}", path_, told.refused));
    return std::move(told.results);
  }

 private:
  template <class Answer, class Body>
  std::variant<Answer, Death> ask(const std::string& name, const Body& body) {
    const std::lock_guard lock(mutex_);
    return process::ask<Answer>(worker_, requests_++, name, body);
  }

  std::string path_, python_;
  std::mutex mutex_;
  std::uint64_t requests_ = 0;
  process::Worker worker_;
};

std::vector<std::string>& added_files() {
  static std::vector<std::string> files;
  return files;
}

void add_file(const std::string& path) {
  if (!std::filesystem::exists(path)) throw UsageError(path + ": No such file or directory");
  const std::string absolute = std::filesystem::absolute(path).string();
  if (std::ranges::find(added_files(), absolute) != added_files().end()) return;
  const auto process = std::make_shared<OwnOpsProcess>(path);
  for (OwnOp& op : process->declarations()) {
    op.reference = [process, name = op.name](const cases::OwnCall& call) {
      return process->results(name, call);
    };
    try {
      cases::OwnDefinition made = cases::define_own_op(std::move(op));
      cases::add_op(std::move(made.op), std::move(made.rows));
    } catch (const cases::BadRow& error) {
      throw UsageError(fmt::format("{}: {}", path, error.what()));
    }
  }
  added_files().push_back(absolute);
}

}  // namespace

void add_ops_of(const std::vector<std::string>& files) {
  for (const std::string& path : files) add_file(path);
  std::string all;
  for (const std::string& path : added_files()) all += path + "\n";
  if (!all.empty()) setenv(cases::kOwnOpsVariable, all.c_str(), 1);
}

void add_ops_of_parent() {
  const char* const named = std::getenv(cases::kOwnOpsVariable);
  if (named == nullptr) return;
  std::vector<std::string> files;
  std::string text = named;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    files.push_back(text.substr(0, end));
    text.erase(0, end + 1);
  }
  add_ops_of(files);
}

}  // namespace plumb::tools
