// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/fuzz.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "golden/hdf5_reader.h"
#include "tests/golden/example_file.h"
#include "tests/support/fuzz_input.h"
#include "tools/golden/golden_text.h"

namespace plumb::golden {

namespace {

using Input = tests::FuzzInput;

std::string some_path(Input& input) {
  const std::string group = "/rms_norm/a/eager";
  return input.one_of<std::string>(
      {"/", "/rms_norm", "/history", "/rms_norm/a", group, group + "/inputs", group + "/outputs",
       group + "/outputs/bytes", group + "/outputs/out", group + "/outputs/count",
       group + "/outputs/nothing", group + "/outputs/many", group + "/outputs/out/values",
       group + "/outputs/many/row_checksums", group + "/outputs/many/sampled_rows",
       group + "/outputs/many/sampled_values", "/rms_norm/b/eager/outputs/slots/values"});
}

std::string some_name(Input& input) {
  const std::string name = input.one_of<std::string>({"schema",
                                                      "platform",
                                                      "op",
                                                      "simulated",
                                                      "results",
                                                      "dtype",
                                                      "format",
                                                      "scale_layout",
                                                      "shape",
                                                      "strides",
                                                      "xxh3_128",
                                                      "order",
                                                      "commit",
                                                      "x",
                                                      "0000",
                                                      "values",
                                                      "sampled_rows",
                                                      "a",
                                                      "statistics",
                                                      "projections",
                                                      ""});
  return name.empty() ? input.text() : name;
}

hid_t some_type(Input& input) {
  return input.one_of<hid_t>({H5T_STD_I64LE, H5T_STD_I32LE, H5T_STD_U64LE, H5T_IEEE_F32LE,
                              H5T_IEEE_F64LE, H5T_STD_U8LE, H5T_C_S1, H5T_STD_REF_OBJ});
}

std::vector<hsize_t> some_extent(Input& input) {
  std::vector<hsize_t> extent(input.byte() % 11);
  for (hsize_t& size : extent) size = static_cast<hsize_t>(input.number());
  return extent;
}

hid_t space_of(const std::vector<hsize_t>& extent) {
  if (extent.empty()) return H5Screate(H5S_SCALAR);
  return H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr);
}

// Writes as many doubles as a sketch has, most of them plausible.
void put_reals(Input& input, hid_t& type, std::vector<hsize_t>& extent,
               std::vector<std::byte>& value) {
  H5Tclose(type);
  type = H5Tcopy(H5T_IEEE_F64LE);
  extent = {input.one_of<hsize_t>({7, 32, 0, 33})};
  for (std::size_t i = 0; i < extent[0]; ++i) {
    const double number = input.one_of<double>(
        {0, 1, -1, 71, 72, 0.5, 1e300, -1e300, std::nan(""), HUGE_VAL, -HUGE_VAL});
    std::memcpy(value.data() + 8 * i, &number, 8);
  }
}

void put_attribute(hid_t file, Input& input) {
  const hid_t object = H5Oopen(file, some_path(input).c_str(), H5P_DEFAULT);
  const std::string name = some_name(input);
  H5Adelete(object, name.c_str());
  std::vector<std::byte> value(4096);
  hid_t type = H5Tcopy(some_type(input));
  std::vector<hsize_t> extent;
  if (input.byte() % 2 == 0) {
    const std::string text = input.text();
    H5Tclose(type);
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type,
                input.byte() % 16 == 0 ? H5T_VARIABLE : std::max<std::size_t>(text.size(), 1));
    std::memcpy(value.data(), text.data(), text.size());
    if (H5Tis_variable_str(type) > 0) std::memset(value.data(), 0, value.size());
  } else if (input.byte() % 4 == 0) {
    put_reals(input, type, extent, value);
  } else {
    extent = {static_cast<hsize_t>(input.byte() % 12)};
    if (extent[0] == 11) extent.clear();
    for (int i = 0; i < 11; ++i) {
      const std::int64_t number = input.number();
      std::memcpy(value.data() + 8 * i, &number, 8);
    }
  }
  const hid_t space = space_of(extent);
  const hid_t attribute = H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
  if (H5Tget_size(type) <= 64) H5Awrite(attribute, type, value.data());
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Oclose(object);
}

void put_data_set(hid_t file, Input& input) {
  const std::string path = some_path(input);
  H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const std::vector<hsize_t> extent = some_extent(input);
  const hid_t space = space_of(extent), properties = H5Pcreate(H5P_DATASET_CREATE);
  if (!extent.empty() && input.byte() % 4 != 0) {
    const std::vector<hsize_t> chunk = input.byte() % 2 ? extent : some_extent(input);
    if (chunk.size() == extent.size()) {
      H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
    }
    for (int i = input.byte() % 5; i > 0; --i) {
      if (input.byte() % 2)
        H5Pset_shuffle(properties);
      else
        H5Pset_deflate(properties, 1);
    }
  }
  if (input.byte() % 8 == 0) H5Pset_external(properties, "/dev/null", 0, H5F_UNLIMITED);
  H5Dclose(H5Dcreate2(file, path.c_str(), some_type(input), space, H5P_DEFAULT, properties,
                      H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
}

void put_link(hid_t file, Input& input) {
  const std::string from = some_path(input), to = some_path(input) + "/" + some_name(input);
  switch (input.byte() % 6) {
    case 0: H5Lcreate_soft(from.c_str(), file, to.c_str(), H5P_DEFAULT, H5P_DEFAULT); return;
    case 1:
      H5Lcreate_external("/dev/null", "/", file, to.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      return;
    case 2: H5Lcreate_hard(file, from.c_str(), file, to.c_str(), H5P_DEFAULT, H5P_DEFAULT); return;
    case 3: H5Lmove(file, from.c_str(), file, to.c_str(), H5P_DEFAULT, H5P_DEFAULT); return;
    case 4: H5Gclose(H5Gcreate2(file, to.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); return;
    default: H5Ldelete(file, from.c_str(), H5P_DEFAULT);
  }
}

void write_values(hid_t file, Input& input) {
  const hid_t data = H5Dopen2(file, some_path(input).c_str(), H5P_DEFAULT);
  if (data < 0) return;
  std::vector<std::byte> bytes(1 << 12);
  for (std::size_t i = 0; i < 64; ++i) bytes[i] = static_cast<std::byte>(input.byte());
  const hid_t type = H5Dget_type(data);
  const hid_t space = H5Dget_space(data);
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  const bool small = points >= 0 && points <= 256 && H5Tget_size(type) <= 16;
  if (small && H5Tget_class(type) != H5T_REFERENCE) {
    H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(data);
}

void edit(hid_t file, Input& input) {
  constexpr int kMostEdits = 24;
  for (int i = 0; i < kMostEdits && !input.empty(); ++i) {
    switch (input.byte() % 6) {
      case 0:
      case 1: put_attribute(file, input); break;
      case 2: put_data_set(file, input); break;
      case 3: put_link(file, input); break;
      case 4: write_values(file, input); break;
      default:
        H5Adelete_by_name(file, some_path(input).c_str(), some_name(input).c_str(), H5P_DEFAULT);
    }
  }
}

// Aborts unless the text is one line without control characters.
void expect_line(std::string_view line) {
  const bool plain =
      !line.empty() && std::all_of(line.begin(), line.end() - 1,
                                   [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  if (!plain || line.back() != '\n') std::abort();
}

}  // namespace

void fuzz_golden(std::span<const std::uint8_t> edits) {
  static const std::vector<std::byte> whole = encode(example_file());
  const hdf5::Hdf5Session session;
  const Handle access = hdf5::memory_access();
  H5Pset_file_image(access, const_cast<std::byte*>(whole.data()), whole.size());
  const Handle file(H5Fopen("/dev/null/golden", H5F_ACC_RDWR, access), H5Fclose, "the example");
  Input input(edits);
  edit(file, input);
  try {
    const GoldenFile read = read_open_file(file);
    validate(read);
    tools::write_text(read, expect_line);
  } catch (const GoldenError& error) {
    const std::string_view text = error.what();
    const bool line =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0x20; });
    if (text.empty() || !line) std::abort();
  }
}

}  // namespace plumb::golden

#ifdef PLUMB_FUZZ
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plumb::golden::fuzz_golden({data, size});
  return 0;
}
#endif
