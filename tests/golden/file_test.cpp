// SPDX-License-Identifier: Apache-2.0
//
// Golden files as bytes: contents survive a round trip, the bytes are always the same, and any
// other file is refused in one line.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "golden/sandbox.h"
#include "golden/store.h"
#include "tests/golden/example_file.h"

namespace plumb::golden {
namespace file_test {

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const GoldenError& error) {
    return error.what();
  }
  return "not refused";
}

std::string refusal_of(std::span<const std::byte> bytes) {
  const std::string text = refusal([&] { decode_untrusted(bytes, "some.h5"); });
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_EQ(text.find("some.h5: "), 0u) << text;
  return text;
}

void expect_refused(const std::function<void(hid_t file)>& change, const std::string& what) {
  const std::string text = refusal_of(tampered(change));
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

void replace_number(hid_t file, const char* path, const char* name, hid_t type,
                    const std::vector<std::int64_t>& values) {
  const hid_t object = H5Oopen(file, path, H5P_DEFAULT);
  H5Adelete(object, name);
  const hsize_t count = values.size();
  const hid_t space = count == 1 && std::string(name) == "schema"
                          ? H5Screate(H5S_SCALAR)
                          : H5Screate_simple(1, &count, nullptr);
  const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, H5T_NATIVE_INT64, values.data());
  H5Aclose(attribute);
  H5Sclose(space);
  H5Oclose(object);
}

constexpr const char* kOut = "/rms_norm/a/eager/outputs/out";

void expect_same_sketch(const TensorGolden& a, const TensorGolden& b) {
  ASSERT_EQ(a.sketch.has_value(), b.sketch.has_value()) << a.name;
  if (!a.sketch) return;
  EXPECT_EQ(a.sketch->projections, b.sketch->projections) << a.name;
  EXPECT_EQ(numbers_of(a.sketch->statistics), numbers_of(b.sketch->statistics)) << a.name;
}

TEST(GoldenFileTest, WhatIsWrittenComesBack) {
  const GoldenFile file = example_file();
  const GoldenFile read = decode(encode(file), "file");
  EXPECT_EQ(read.platform, file.platform);
  EXPECT_EQ(read.history, file.history);
  EXPECT_TRUE(read.simulated);
  ASSERT_EQ(read.cases.size(), 2u);
  EXPECT_EQ(results_digest(read), results_digest(file));
  EXPECT_EQ(read.cases[1].provenance, file.cases[1].provenance);
  EXPECT_EQ(read.cases[0].inputs, file.cases[0].inputs);
  for (std::size_t i = 0; i < file.cases[0].outputs.size(); ++i) {
    const TensorGolden &a = read.cases[0].outputs[i], &b = file.cases[0].outputs[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.values, b.values) << a.name;
    EXPECT_EQ(a.row_checksums, b.row_checksums);
    EXPECT_EQ(a.sampled_rows, b.sampled_rows);
    EXPECT_EQ(a.format, b.format);
    EXPECT_EQ(a.scale_layout, b.scale_layout);
    EXPECT_EQ(a.shape, b.shape);
    expect_same_sketch(a, b);
  }
}

// Files from before schema 2 are read, and written again with the same bytes.
TEST(GoldenFileTest, WithoutSketchesAFileHasSchema1) {
  const GoldenFile file = example_file_of_schema_1();
  EXPECT_EQ(schema_of(file), 1);
  EXPECT_EQ(schema_of(example_file()), 2);
  const std::vector<std::byte> bytes = encode(file);
  const GoldenFile read = decode(bytes, "file");
  EXPECT_FALSE(read.cases[0].outputs.back().sketch);
  EXPECT_EQ(encode(read), bytes);
  EXPECT_EQ(results_digest(file), results_digest(example_file())) << "a sketch is no result";
}

TEST(GoldenFileTest, EqualContentsAreEqualBytes) {
  const std::vector<std::byte> first = encode(example_file());
  EXPECT_EQ(encode(example_file()), first);
  EXPECT_EQ(encode(decode(first, "file")), first);
  EXPECT_EQ(encode(decode_untrusted(first, "file")), first);
}

TEST(GoldenFileTest, Bf16IsTheUpperHalfOfAnIeeeSingle) {
  tampered([](hid_t file) {
    const hid_t data = H5Dopen2(file, (std::string(kOut) + "/values").c_str(), H5P_DEFAULT);
    std::vector<float> values(48);
    EXPECT_GE(H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(data);
    const TensorGolden out = example_case("rms_norm/a/eager").outputs[3];
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, out.values.data() + 2 * i, 2);
      const std::uint32_t wide = std::uint32_t{bits} << 16;
      EXPECT_EQ(std::memcmp(&values[i], &wide, 4), 0) << i;
    }
  });
}

TEST(GoldenFileTest, WrongShapesTypesAndNumbersAreRefused) {
  expect_refused([](hid_t f) { replace_number(f, kOut, "shape", H5T_STD_I64LE, {2, 3, 9}); },
                 "out/values: not of the shape that it has to have");
  expect_refused([](hid_t f) { replace_number(f, kOut, "shape", H5T_STD_I64LE, {2, 24}); },
                 "out: strides and shape do not match");
  const std::int64_t huge = std::int64_t{1} << 39;
  expect_refused(
      [&](hid_t f) { replace_number(f, kOut, "shape", H5T_STD_I64LE, {huge, huge, huge}); },
      "out: too many elements");
  expect_refused([](hid_t f) { replace_number(f, kOut, "shape", H5T_STD_I64LE, {-1, 3, 8}); },
                 "out: a dimension is out of range");
  expect_refused([](hid_t f) { replace_number(f, kOut, "shape", H5T_STD_I32LE, {2, 3, 8}); },
                 "out/shape: of another type than it has to be");
  expect_refused(
      [](hid_t f) { replace_number(f, kOut, "shape", H5T_STD_I64LE, {1, 1, 1, 1, 1, 1, 1, 1, 1}); },
      "out/shape: not as many numbers as there have to be");
  expect_refused([](hid_t f) { replace_number(f, "/", "schema", H5T_STD_I64LE, {7}); },
                 "schema 7, newer than 2");
  expect_refused([](hid_t f) { replace_number(f, "/", "schema", H5T_STD_I64LE, {0}); },
                 "schema 0 never was");
}

void replace_reals(hid_t file, const char* tensor, const char* name, std::vector<double> values) {
  const std::string path = "/rms_norm/a/eager/outputs/" + std::string(tensor);
  const hid_t object = H5Oopen(file, path.c_str(), H5P_DEFAULT);
  if (H5Aexists(object, name) > 0) H5Adelete(object, name);
  const hsize_t count = values.size();
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t attribute = H5Acreate2(object, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, H5T_NATIVE_DOUBLE, values.data());
  H5Aclose(attribute);
  H5Sclose(space);
  H5Oclose(object);
}

void expect_statistics_refused(const std::vector<double>& statistics, const std::string& what) {
  expect_refused([&](hid_t f) { replace_reals(f, "many", "statistics", statistics); },
                 "outputs/many" + what);
}

TEST(GoldenFileTest, SketchesThatNoTensorHasAreRefused) {
  const std::vector<double> projections(32, 1.0);
  expect_statistics_refused({1, 0.5, 3, -2, 0, 4}, "/statistics: not as many numbers");
  expect_statistics_refused({0.5, 0.5, 3, -2, 0, 4, 1}, "/statistics: a count that is none");
  expect_statistics_refused({1, 0.5, 3, -2, 1e300, 4, 1}, "/statistics: a count that is none");
  expect_statistics_refused({1, 0.5, 3, -2, NAN, 4, 1}, "/statistics: a count that is none");
  const std::string where = "rms_norm/a/eager/many: ";
  const auto refused = [&](const std::vector<double>& statistics, const std::string& what) {
    expect_refused([&](hid_t f) { replace_reals(f, "many", "statistics", statistics); },
                   where + what);
  };
  refused({73, 0.5, 3, -2, 0, 4, 1}, "more elements that are not finite than there are");
  refused({1, 0.5, 3, -2, 72, 4, 1}, "an extreme is no element");
  refused({72, 0.5, 3, -2, 0, 4, 1}, "an extreme is no element");
  refused({1, INFINITY, 3, -2, 0, 4, 1}, "a statistic is not finite");
  refused({1, 0.5, -3, -2, 0, 4, 1}, "statistics that nothing has");
  refused({1, 0.5, 3, 5, 0, 4, 1}, "statistics that nothing has");
  expect_refused(
      [&](hid_t f) { replace_reals(f, "many", "projections", std::vector<double>(32, NAN)); },
      where + "a projection is not finite");
  expect_refused([&](hid_t f) { replace_reals(f, "many", "projections", {1}); },
                 "many/projections: not as many numbers");
  expect_refused([&](hid_t f) { replace_reals(f, "out", "projections", projections); },
                 "outputs/out: no attribute \"statistics\"");
  expect_refused(
      [&](hid_t f) {
        replace_reals(f, "out", "projections", projections);
        replace_reals(f, "out", "statistics", {0, 0, 0, 0, 0, 0, 0});
      },
      "rms_norm/a/eager/out: a sketch of values that are all stored");
  expect_refused([](hid_t f) { replace_number(f, "/", "schema", H5T_STD_I64LE, {1}); },
                 "schema 1, and contents of schema 2");
}

TEST(GoldenFileTest, WhatIsMissingOrUnknownIsRefused) {
  expect_refused([](hid_t f) { H5Adelete_by_name(f, kOut, "xxh3_128", H5P_DEFAULT); },
                 "out: no attribute \"xxh3_128\"");
  expect_refused([](hid_t f) { H5Adelete(f, "schema"); }, "no attribute \"schema\"");
  expect_refused([](hid_t f) { H5Adelete_by_name(f, "/rms_norm/b/eager", "commit", H5P_DEFAULT); },
                 "/rms_norm/b/eager: no attribute \"commit\"");
  expect_refused([](hid_t f) { H5Ldelete(f, "/rms_norm/a/eager/inputs", H5P_DEFAULT); },
                 "/rms_norm/a/eager: no object \"inputs\"");
  expect_refused([](hid_t f) { H5Ldelete(f, "/rms_norm/a/eager/outputs/out", H5P_DEFAULT); },
                 "no object \"out\"");
  expect_refused(
      [](hid_t f) { H5Gclose(H5Gcreate2(f, "/more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); },
      "unknown object \"more\"");
  expect_refused(
      [](hid_t f) { H5Lmove(f, "/rms_norm/b", f, "/rms_norm/B !", H5P_DEFAULT, H5P_DEFAULT); },
      "not a case of rms_norm");
}

TEST(GoldenFileTest, LinksThatLeadElsewhereAreRefused) {
  expect_refused(
      [](hid_t f) {
        H5Lcreate_external("/etc/passwd", "/", f, "/rms_norm/out", H5P_DEFAULT, H5P_DEFAULT);
      },
      "a link \"out\" that leads out of the file");
  expect_refused(
      [](hid_t f) { H5Lcreate_soft("/rms_norm", f, "/rms_norm/loop", H5P_DEFAULT, H5P_DEFAULT); },
      "a link \"loop\" that leads out of the file");
  // A hard link to a parent group makes a loop. The reader refuses it as an unexpected group.
  expect_refused(
      [](hid_t f) {
        H5Lcreate_hard(f, "/rms_norm", f, "/rms_norm/a/eager/outputs/out/values2", H5P_DEFAULT,
                       H5P_DEFAULT);
      },
      "out/row_checksums: not there");
}

void replace_values(hid_t file, hid_t type, bool external) {
  const std::string path = std::string(kOut) + "/values";
  H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const hsize_t extent[3] = {2, 3, 8};
  const hid_t space = H5Screate_simple(3, extent, nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  if (external) H5Pset_external(properties, "/etc/passwd", 0, 96);
  H5Dclose(H5Dcreate2(file, path.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
}

TEST(GoldenFileTest, ValuesOfAnotherTypeOrFromAnotherFileAreRefused) {
  expect_refused([](hid_t f) { replace_values(f, H5T_IEEE_F64LE, false); },
                 "out/values: of another type");
  expect_refused([](hid_t f) { replace_values(f, H5T_STD_I16LE, false); },
                 "out/values: of another type");
  expect_refused(
      [](hid_t f) {
        const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
        H5Tset_fields(type, 15, 7, 8, 0, 7);
        H5Tset_size(type, 2);
        H5Tset_ebias(type, 127);
        replace_values(f, type, true);
        H5Tclose(type);
      },
      "out/values: not stored in a chunk");
}

TEST(GoldenFileTest, AChangedValueIsRefused) {
  expect_refused(
      [](hid_t f) {
        const hid_t data = H5Dopen2(f, "/rms_norm/a/eager/outputs/slots/values", H5P_DEFAULT);
        const std::int64_t values[7] = {1, 2, 3, 4, 5, 6, 7};
        H5Dwrite(data, H5T_STD_I64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(data);
      },
      "slots/values: its digest is another one");
}

TEST(GoldenFileTest, EveryTruncationIsRefused) {
  const std::vector<std::byte> bytes = encode(example_file());
  for (std::size_t size = 0; size < bytes.size(); size += 997) {
    refusal_of(std::span(bytes).first(size));
  }
}

// Not all of HDF5's structures have a checksum, so some flipped bits are not noticed. These must
// not change the contents that are read.
TEST(GoldenFileTest, NoFlippedBitChangesWhatIsRead) {
  const std::vector<std::byte> bytes = encode(example_file());
  const std::string digest = results_digest(example_file());
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> flipped = bytes;
    flipped[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    try {
      EXPECT_EQ(results_digest(decode_untrusted(flipped, "flipped")), digest);
    } catch (const GoldenError& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(refused, 150);
}

TEST(GoldenFileTest, WhatTakesAllMemoryOrTimeEndsWithTheProcess) {
  std::vector<std::byte> noise(1 << 16);
  std::mt19937_64 random(2);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  EXPECT_EQ(refusal_of(noise), "some.h5: not an HDF5 file: not there or not readable");
  EXPECT_EQ(refusal_of({}), "some.h5: empty");
}

TEST(GoldenFileTest, InconsistentContentsAreNeverWritten) {
  GoldenFile file = example_file();
  file.cases[0].outputs[0].values[0] ^= std::byte{1};
  EXPECT_NE(refusal([&] { encode(file); }).find("the digest is not that of the values"),
            std::string::npos);
  file = example_file();
  std::swap(file.cases[0], file.cases[1]);
  EXPECT_NE(refusal([&] { encode(file); }).find("cases out of order"), std::string::npos);
  file = example_file();
  file.history[0] = "\033[31m";
  EXPECT_NE(refusal([&] { encode(file); }).find("control character"), std::string::npos);
}

}  // namespace file_test
}  // namespace plumb::golden
