// SPDX-License-Identifier: Apache-2.0
#include "trace/step_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "hdf5/digest.h"
#include "hdf5/handle.h"

namespace plumb::trace {

namespace {

using hdf5::Handle;
using hdf5::Hdf5Session;
using hdf5::require_success;

constexpr const char* kText = "step";
constexpr const char* kData = "data";
constexpr std::size_t kLongestText = std::size_t{1} << 28;

void put_bytes(hid_t group, const std::string& name, std::span<const std::byte> bytes) {
  const hsize_t extent = bytes.size();
  const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose, name);
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, name);
  require_success(H5Pset_obj_track_times(properties, false), name);
  const Handle data(
      H5Dcreate2(group, name.c_str(), H5T_STD_U8LE, space, H5P_DEFAULT, properties, H5P_DEFAULT),
      H5Dclose, name);
  if (bytes.empty()) return;
  require_success(H5Dwrite(data, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), name);
}

void write_all(const std::string& path, const std::string& text, const StepData& data) {
  const Hdf5Session session;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, path);
  require_success(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), path);
  const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose, path);
  put_bytes(file, kText, std::as_bytes(std::span(text)));
  const Handle group(H5Gcreate2(file, kData, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose,
                     kData);
  for (const auto& [digest, bytes] : data) put_bytes(group, digest, bytes);
  require_success(H5Fflush(file, H5F_SCOPE_GLOBAL), path);
}

// Tries to create the file first, because HDF5 does not say why it cannot.
void require_writable(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) throw BadTrace(fmt::format("{}: {}", path, std::strerror(errno)));
  close(descriptor);
}

void sync(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// Requires a data set whose bytes are stored unchanged in this file: no filter, no external file,
// no virtual part.
void require_plain(hid_t data, const std::string& where) {
  const Handle type(H5Dget_type(data), H5Tclose, where);
  if (H5Tequal(type, H5T_STD_U8LE) <= 0) throw BadTrace(where + ": not bytes");
  const Handle properties(H5Dget_create_plist(data), H5Pclose, where);
  const H5D_layout_t layout = H5Pget_layout(properties);
  const bool plain = layout == H5D_CONTIGUOUS || layout == H5D_COMPACT;
  if (!plain || H5Pget_external_count(properties) != 0 || H5Pget_nfilters(properties) != 0) {
    throw BadTrace(where + ": not stored in one piece in this file");
  }
}

// A data set of bytes that passed the checks.
struct ByteSet {
  Handle object;
  std::string where;
  std::size_t size = 0;
};

ByteSet open_bytes(hid_t group, const std::string& name, const std::string& where,
                   std::size_t most) {
  H5L_info_t link{};
  if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) {
    throw BadTrace(where + ": not there");
  }
  if (link.type != H5L_TYPE_HARD) throw BadTrace(where + ": a link that leads to another place");
  Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, where);
  if (H5Iget_type(object) != H5I_DATASET) throw BadTrace(where + ": not a data set");
  require_plain(object, where);
  const Handle space(H5Dget_space(object), H5Sclose, where);
  hsize_t extent = 0;
  if (H5Sget_simple_extent_ndims(space) != 1 ||
      H5Sget_simple_extent_dims(space, &extent, nullptr) != 1) {
    throw BadTrace(where + ": not of one dimension");
  }
  if (extent > most) throw BadTrace(fmt::format("{}: {} bytes, too many", where, extent));
  // HDF5 would read space that was never allocated as zeros.
  if (extent != 0 && H5Dget_storage_size(object) != extent) {
    throw BadTrace(where + ": not all of its bytes are stored");
  }
  return {std::move(object), where, extent};
}

std::vector<std::byte> read_bytes(const ByteSet& set) {
  std::vector<std::byte> bytes(set.size);
  if (set.size != 0 &&
      H5Dread(set.object, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
    throw BadTrace(set.where + ": its bytes cannot be read");
  }
  return bytes;
}

// Mapped pages of a file, which the operating system can drop when it needs memory.
class MappedBytes final : public BytesOwner {
 public:
  // Maps nothing if the range exceeds the file.
  MappedBytes(int descriptor, std::size_t first, std::size_t size) {
    struct stat file{};
    if (fstat(descriptor, &file) != 0) return;
    const auto end = static_cast<std::size_t>(file.st_size);
    if (first > end || size > end - first) return;
    before_ = first % static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    length_ = before_ + size;
    pages_ = mmap(nullptr, length_, PROT_READ, MAP_PRIVATE, descriptor,
                  static_cast<off_t>(first - before_));
  }
  ~MappedBytes() override {
    if (pages_ != MAP_FAILED) munmap(pages_, length_);
  }
  MappedBytes(const MappedBytes&) = delete;
  MappedBytes& operator=(const MappedBytes&) = delete;

  // Empty if the file could not be mapped.
  std::span<const std::byte> bytes() const {
    if (pages_ == MAP_FAILED) return {};
    return {static_cast<const std::byte*>(pages_) + before_, length_ - before_};
  }
  // Digest of the bytes. Reads 4 MiB at a time and then drops their pages from memory.
  std::string digest() const {
    constexpr std::size_t kPart = std::size_t{1} << 22;
    hdf5::DigestOfParts digest;
    for (std::size_t at = 0; at < length_; at += kPart) {
      const std::size_t first = std::max(at, before_), end = std::min(at + kPart, length_);
      if (first < end) digest.add(bytes().subspan(first - before_, end - first));
      madvise(static_cast<std::byte*>(pages_) + at, end - at, MADV_DONTNEED);
    }
    return digest.digits();
  }
  void leave_memory() const override { madvise(pages_, length_, MADV_DONTNEED); }

 private:
  void* pages_ = MAP_FAILED;
  std::size_t before_ = 0, length_ = 0;
};

struct ReadBytes final : BytesOwner {
  std::vector<std::byte> bytes;
  explicit ReadBytes(std::vector<std::byte> all) : bytes(std::move(all)) {}
};

// Maps the data set. nullopt: it is not contiguous in the file, or its digest does not match.
std::optional<StoredBytes> mapped(int descriptor, const ByteSet& set, const std::string& digest) {
  constexpr std::size_t kLeast = std::size_t{1} << 16;  // smaller data is read faster than mapped
  const haddr_t first = set.size < kLeast ? HADDR_UNDEF : H5Dget_offset(set.object);
  if (first == HADDR_UNDEF || descriptor < 0) return std::nullopt;
  const auto pages = std::make_shared<MappedBytes>(descriptor, first, set.size);
  if (pages->bytes().empty() || pages->digest() != digest) return std::nullopt;
  return StoredBytes{pages->bytes(), pages};
}

}  // namespace

void write_step_file(const std::string& path, const std::string& text, const StepData& data) {
  const std::string unfinished = path + ".unfinished";
  require_writable(unfinished);
  try {
    write_all(unfinished, text, data);
    sync(unfinished);
    std::filesystem::rename(unfinished, path);
  } catch (const std::exception& error) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw BadTrace(fmt::format("cannot write {}: {}", path, error.what()));
  }
}

struct StepFile::Open {
  Handle file, data;
  int descriptor;  // descriptor of the same file; -1: none
  Open(Handle file_, Handle data_, const std::string& path)
      : file(std::move(file_)),
        data(std::move(data_)),
        descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Open() {
    if (descriptor >= 0) close(descriptor);
  }
};

StepFile::StepFile(std::string path) : path_(std::move(path)) {
  std::error_code trouble;
  if (!std::filesystem::is_regular_file(path_, trouble)) throw BadTrace(path_ + ": not a file");
  size_ = std::filesystem::file_size(path_, trouble);
  const Hdf5Session session;
  Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
              path_ + ": no HDF5 file");
  H5L_info_t link{};
  if (H5Lget_info(file, kData, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) {
    throw BadTrace(path_ + ": not a file of a trace: no group \"data\"");
  }
  Handle group(H5Gopen2(file, kData, H5P_DEFAULT), H5Gclose, path_ + "/data");
  open_ = std::make_unique<Open>(std::move(file), std::move(group), path_);
}

StepFile::~StepFile() {
  const Hdf5Session session;
  open_.reset();
}

std::string StepFile::text() const {
  const Hdf5Session session;
  const std::vector<std::byte> bytes = read_bytes(
      open_bytes(open_->file, kText, path_ + "/" + kText, std::min(kLongestText, size_)));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool StepFile::contains(const std::string& digest) const {
  const Hdf5Session session;
  return H5Lexists(open_->data, digest.c_str(), H5P_DEFAULT) > 0;
}

StoredBytes StepFile::read(const std::string& digest, std::size_t bytes) const {
  const Hdf5Session session;
  const std::string where = fmt::format("{}/data/{}", path_, digest);
  const ByteSet set = open_bytes(open_->data, digest, where, std::min(bytes, size_));
  if (set.size != bytes) {
    throw BadTrace(fmt::format("{}: {} bytes where the tensor has {}", where, set.size, bytes));
  }
  if (auto pages = mapped(open_->descriptor, set, digest)) return *pages;
  const auto read = std::make_shared<const ReadBytes>(read_bytes(set));
  if (hdf5::digest_of(read->bytes) != digest) throw BadTrace(where + ": its bytes are damaged");
  return {read->bytes, read};
}

}  // namespace plumb::trace
