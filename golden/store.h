// SPDX-License-Identifier: Apache-2.0
//
// The folder of golden files, <platform>/<op>.h5, and its manifest, which holds the digest of each.
//
// The manifest decides what the store is. A change writes its files beside the old ones
// (<op>.h5.new), then replaces the manifest, then gives the files their names; whoever reads takes
// from both names the one with the manifest's digest. So the store is the old one until the
// manifest is replaced, and the new one from then on, wherever it is interrupted.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/file_system.h"
#include "golden/model.h"

namespace plumb::golden {

// Digest of each file by its name, "sim-sm90/rms_norm.h5".
using Manifest = std::map<std::string, std::string>;
std::string to_text(const Manifest& manifest);
// Throws GoldenError that names the line.
Manifest parse_manifest(std::string_view text, std::string_view name);
inline constexpr std::string_view kManifest = "manifest.txt";
std::string file_name(std::string_view platform, std::string_view op);

class Store {
 public:
  // Throws GoldenError for a manifest that cannot be read. A folder without one is an empty store.
  explicit Store(std::string folder,
                 std::shared_ptr<FileSystem> files = std::make_shared<FileSystem>());

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(std::string_view platform) const;
  // Nothing if the manifest names no such file. Throws GoldenError for one that is missing, has
  // another digest, or cannot be used: its digest is compared before HDF5 sees it.
  std::optional<GoldenFile> load(const std::string& platform, const std::string& op) const;
  // Bytes of a file of the manifest, with its digest.
  std::vector<std::byte> bytes_of(const std::string& name) const;
  // Replaces the files of these ops of one platform, all or none; one without cases is removed.
  // Finishes, or clears up after, a change that was interrupted.
  void replace(const std::vector<GoldenFile>& changed);

  // Files below the folder that are named like goldens and are not in the manifest.
  std::vector<std::string> strays() const;

 private:
  std::string path_of(std::string_view name) const;
  void finish_names();
  // Removes files of an interrupted change that the manifest does not name.
  void remove_unfinished();

  std::string folder_;
  std::shared_ptr<FileSystem> files_;
  Manifest manifest_;
};

}  // namespace plumb::golden
