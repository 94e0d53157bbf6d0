// SPDX-License-Identifier: Apache-2.0
#include "golden/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "golden/hdf5_file.h"

namespace plumb::golden {

namespace {

constexpr std::string_view kHeader = "# XXH3-128 of every golden file. Written by plumb golden.\n";
constexpr std::string_view kNew = ".new";

// Whether the name is "platform/op.h5" with plain names, so that it cannot lead out of the folder.
bool is_file_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == 0 || slash == std::string_view::npos || !name.ends_with(".h5")) return false;
  const auto plain = [](std::string_view text, std::string_view more) {
    const std::string allowed = "abcdefghijklmnopqrstuvwxyz0123456789_" + std::string(more);
    return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
  };
  return plain(name.substr(0, slash), "-") &&
         plain(name.substr(slash + 1, name.size() - slash - 4), "");
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  std::string text(kHeader);
  for (const auto& [name, digest] : manifest) text += fmt::format("{}  {}\n", digest, name);
  return text;
}

Manifest parse_manifest(std::string_view text, std::string_view name) {
  Manifest manifest;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (end == std::string_view::npos) {
      throw GoldenError(fmt::format("{}:{}: the line does not end", name, number));
    }
    text.remove_prefix(end + 1);
    if (line.starts_with('#')) continue;
    const std::string_view digest = line.substr(0, 32);
    if (line.size() < 35 || line.substr(32, 2) != "  " || !is_file_name(line.substr(34)) ||
        digest.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
      throw GoldenError(fmt::format("{}:{}: not a digest and a file", name, number));
    }
    if (!manifest.emplace(line.substr(34), digest).second) {
      throw GoldenError(fmt::format("{}:{}: a second line for this file", name, number));
    }
  }
  return manifest;
}

std::string file_name(std::string_view platform, std::string_view op) {
  return fmt::format("{}/{}.h5", platform, op);
}

Store::Store(std::string folder, std::shared_ptr<FileSystem> files)
    : folder_(std::move(folder)), files_(std::move(files)) {
  constexpr std::size_t kMostBytes = 1 << 20;
  const std::string path = path_of(kManifest);
  if (const auto bytes = files_->read(path, kMostBytes)) {
    manifest_ = parse_manifest(text_of(*bytes), path);
  }
}

std::string Store::path_of(std::string_view name) const {
  return fmt::format("{}/{}", folder_, name);
}

bool Store::has(std::string_view platform) const {
  const std::string prefix = fmt::format("{}/", platform);
  const auto first = manifest_.lower_bound(prefix);
  return first != manifest_.end() && first->first.starts_with(prefix);
}

std::vector<std::byte> Store::bytes_of(const std::string& name) const {
  const std::string path = path_of(name);
  const std::string& digest = manifest_.at(name);
  bool any = false;
  for (const std::string& place : {path, path + std::string(kNew)}) {
    auto bytes = files_->read(place, Limits::file_bytes);
    if (bytes && digest_of(*bytes) == digest) return std::move(*bytes);
    any = any || bytes.has_value();
  }
  throw GoldenError(any ? fmt::format("{}: not the file whose digest the manifest has", path)
                        : fmt::format("{}: in the manifest, but not there", path));
}

std::optional<GoldenFile> Store::load(const std::string& platform, const std::string& op) const {
  const std::string name = file_name(platform, op);
  if (!manifest_.contains(name)) return std::nullopt;
  GoldenFile file = decode(bytes_of(name), path_of(name));
  if (file.platform != platform || file.op != op) {
    throw GoldenError(fmt::format("{}: holds {} of {}", path_of(name), file.op, file.platform));
  }
  return file;
}

void Store::finish_names() {
  std::set<std::string> folders;
  for (const auto& [name, digest] : manifest_) {
    const std::string path = path_of(name), pending = path + std::string(kNew);
    const auto bytes = files_->read(pending, Limits::file_bytes);
    if (!bytes) continue;
    if (digest_of(*bytes) == digest) {
      files_->rename(pending, path);
    } else {
      files_->remove(pending);
    }
    folders.insert(std::filesystem::path(path).parent_path().string());
  }
  for (const std::string& folder : folders) files_->sync_folder(folder);
}

void Store::remove_unfinished() {
  if (!std::filesystem::is_directory(folder_)) return;
  std::vector<std::string> unfinished;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    const std::string name = std::filesystem::relative(entry.path(), folder_).string();
    if (!name.ends_with(kNew)) continue;
    const std::string of = name.substr(0, name.size() - kNew.size());
    if (of == kManifest || is_file_name(of)) unfinished.push_back(entry.path().string());
  }
  for (const std::string& path : unfinished) files_->remove(path);
}

void Store::replace(const std::vector<GoldenFile>& changed) {
  finish_names();
  remove_unfinished();
  Manifest next = manifest_;
  std::vector<std::string> gone;
  std::set<std::string> folders;
  for (const GoldenFile& file : changed) {
    const std::string name = file_name(file.platform, file.op);
    if (file.cases.empty()) {
      next.erase(name);
      gone.push_back(path_of(name));
      continue;
    }
    const std::vector<std::byte> bytes = encode(file);
    const std::string folder = path_of(file.platform);
    if (folders.insert(folder).second) files_->make_folder(folder);
    files_->write(path_of(name) + std::string(kNew), bytes);
    next[name] = digest_of(bytes);
  }
  for (const std::string& folder : folders) files_->sync_folder(folder);
  const std::string text = to_text(next), path = path_of(kManifest);
  files_->make_folder(folder_);
  files_->write(path + std::string(kNew), std::as_bytes(std::span(text)));
  files_->rename(path + std::string(kNew), path);
  files_->sync_folder(folder_);
  manifest_ = std::move(next);
  finish_names();
  for (const std::string& file : gone) files_->remove(file);
}

std::vector<std::string> Store::strays() const {
  std::vector<std::string> found;
  if (!std::filesystem::is_directory(folder_)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    const std::string name = std::filesystem::relative(entry.path(), folder_).string();
    if (is_file_name(name) && !manifest_.contains(name)) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace plumb::golden
