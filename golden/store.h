// SPDX-License-Identifier: Apache-2.0
//
// The folder of golden files, <platform>/<op>.h5, and its manifest with the digest of each file.
//
// The manifest defines the contents of the store. A change writes new files next to the old ones
// (<op>.h5.new), then replaces the manifest, then renames the files. A reader takes the file, of
// either name, that has the manifest's digest. So an interrupted change leaves the old store if the
// manifest was not replaced yet, and the new store otherwise.
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

// Digests by file name, such as "sim-sm90/rms_norm.h5".
using Manifest = std::map<std::string, std::string>;
std::string to_text(const Manifest& manifest);
// Throws GoldenError with the line.
Manifest parse_manifest(std::string_view text, std::string_view name);
inline constexpr std::string_view kManifest = "manifest.txt";
std::string file_name(std::string_view platform, std::string_view op);

class Store {
 public:
  // Throws GoldenError for an unreadable manifest. A folder without a manifest is an empty store.
  explicit Store(std::string folder,
                 std::shared_ptr<FileSystem> files = std::make_shared<FileSystem>());

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(std::string_view platform) const;
  // nullopt if the manifest does not name the file. Throws GoldenError if it is missing, has
  // another digest or is malformed. The digest is compared before HDF5 opens the file.
  std::optional<GoldenFile> load(const std::string& platform, const std::string& op) const;
  // Bytes of a file of the manifest, whose digest has been checked.
  std::vector<std::byte> bytes_of(const std::string& name) const;
  // Replaces the files of these ops of one platform, all or none. A file without cases is removed.
  // First finishes or reverts an interrupted change.
  void replace(const std::vector<GoldenFile>& changed);

  // Files in the folder with names of goldens that are not in the manifest.
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
