// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/diff_operands.h"

#include <fmt/format.h>

#include <filesystem>

#include "device/device.h"
#include "golden/git.h"
#include "golden/hdf5_file.h"
#include "golden/sandbox.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using golden::GoldenError;
using golden::GoldenFile;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

DiffOperand side_of_file(const std::string& path) {
  DiffOperand side{.name = path, .is_file = true};
  std::string digest;
  const GoldenFile file = read_golden_file(path, &digest);
  side.entries.push_back({file.platform, file.op, digest, [file] { return file; }});
  return side;
}

void add_manifest(const golden::Manifest& manifest, const std::string& platform,
                  const std::function<GoldenFile(const std::string& name)>& load,
                  DiffOperand& side) {
  for (const auto& [name, digest] : manifest) {
    const std::size_t slash = name.find('/');
    const std::string of = name.substr(0, slash);
    if (!platform.empty() && of != platform) continue;
    const std::string op = name.substr(slash + 1, name.size() - slash - 4);
    side.entries.push_back({of, op, digest, [load, name] { return load(name); }});
  }
}

DiffOperand side_of_platform(const std::string& platform, const golden::Store& store) {
  if (!store.has(platform)) {
    throw UsageError(fmt::format("{} has no goldens for {}", store.folder(), platform));
  }
  DiffOperand side{.name = platform};
  const auto load = [&store](const std::string& name) {
    return golden::decode(store.bytes_of(name), name);
  };
  add_manifest(store.manifest(), platform, load, side);
  return side;
}

// The golden store at a commit.
class Revision {
 public:
  Revision(std::string folder, std::string commit, std::string name)
      : folder_(std::move(folder)), commit_(std::move(commit)), name_(std::move(name)) {
    const auto prefix = golden::ask_git(folder_, {"rev-parse", "--show-prefix"});
    prefix_ = prefix && !prefix->empty() ? prefix->substr(0, prefix->size() - 1) : "";
  }

  golden::Manifest manifest() const {
    const auto text = blob(std::string(golden::kManifest));
    if (!text) throw UsageError(fmt::format("{} has no goldens", name_));
    return golden::parse_manifest(*text, name_ + ":" + std::string(golden::kManifest));
  }
  GoldenFile load(const std::string& file, const std::string& digest) const {
    const std::string where = name_ + ":" + file;
    const auto text = blob(file);
    if (!text) throw GoldenError(where + ": in the manifest, but not there");
    if (golden::digest_of(*text) != digest) {
      throw GoldenError(where + ": not the file whose digest the manifest has");
    }
    return golden::decode_untrusted(bytes_of(*text), where);
  }

 private:
  std::optional<std::string> blob(const std::string& file) const {
    return golden::ask_git(folder_, {"cat-file", "blob", commit_ + ":" + prefix_ + file});
  }

  std::string folder_, commit_, name_, prefix_;
};

DiffOperand side_of_revision(const std::string& name, const std::string& commit,
                             const std::string& platform, const golden::Store& store) {
  const Revision revision(store.folder(), commit, name);
  const golden::Manifest manifest = revision.manifest();
  DiffOperand side{.name = name};
  add_manifest(
      manifest, platform,
      [revision, manifest](const std::string& file) {
        return revision.load(file, manifest.at(file));
      },
      side);
  if (side.entries.empty())
    throw UsageError(fmt::format("{} has no goldens for {}", name, platform));
  return side;
}

std::string commit_named(const std::string& name, const std::string& folder) {
  if (name.empty() || name.starts_with('-')) return "";
  const auto commit =
      golden::ask_git(folder, {"rev-parse", "--verify", "--quiet", name + "^{commit}"});
  return commit && !commit->empty() ? commit->substr(0, commit->size() - 1) : "";
}

}  // namespace

GoldenFile read_golden_file(const std::string& path, std::string* digest) {
  const auto bytes = golden::FileSystem().read(path, golden::Limits::file_bytes);
  if (!bytes) throw UsageError(path + ": no such file");
  if (digest) *digest = golden::digest_of(*bytes);
  return golden::decode_untrusted(*bytes, path);
}

DiffOperand diff_operand(const std::string& name, const golden::Store& store) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored)) return side_of_file(name);
  for (const std::string& platform : device::known_platforms()) {
    if (platform == name) return side_of_platform(name, store);
  }
  const std::size_t colon = name.rfind(':');
  const std::string revision = name.substr(0, colon);
  const std::string commit = commit_named(revision, store.folder());
  if (commit.empty()) {
    throw UsageError(
        fmt::format("\"{}\" is neither a file nor a platform nor a git revision", name));
  }
  return side_of_revision(name, commit, colon == std::string::npos ? "" : name.substr(colon + 1),
                          store);
}

}  // namespace plumb::tools
