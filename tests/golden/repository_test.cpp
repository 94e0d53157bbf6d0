// SPDX-License-Identifier: Apache-2.0
//
// The goldens of this repository are complete, small, and written by the tool.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/hdf5_file.h"
#include "golden/provenance.h"
#include "golden/store.h"

namespace plumb::golden {
namespace repository_test {

TEST(GoldenRepositoryTest, IsWholeAndSmall) {
  const Store store(PLUMB_GOLDENS);
  std::size_t bytes = 0, simulated = 0;
  for (const auto& [name, digest] : store.manifest()) {
    bytes += store.bytes_of(name).size();
    simulated += name.starts_with("sim-");
  }
  EXPECT_LT(bytes, std::size_t{25} << 20);
  EXPECT_GE(simulated, 100u);
  EXPECT_TRUE(store.strays().empty()) << store.strays().front();
}

// Encoding the contents again gives the same bytes, unless the file has another version of HDF5 or
// zlib. Files say whether their platform is simulated.
TEST(GoldenRepositoryTest, IsWhatTheToolWrites) {
  const Store store(PLUMB_GOLDENS);
  const std::string libraries =
      provenance_of("rms_norm", device::open_device("sim-sm90")->properties()).at("libraries");
  for (const auto& [name, digest] : store.manifest()) {
    const std::vector<std::byte> bytes = store.bytes_of(name);
    const GoldenFile file = decode(bytes, name);
    EXPECT_EQ(file.simulated, name.starts_with("sim-")) << name;
    EXPECT_FALSE(file.history.empty()) << name;
    const bool ours = std::all_of(file.cases.begin(), file.cases.end(), [&](const auto& golden) {
      return golden.provenance.at("libraries").starts_with(libraries);
    });
    for (const CaseGolden& golden : file.cases) {
      EXPECT_EQ(golden.provenance.at("platform"), file.platform) << golden.id;
      EXPECT_EQ(golden.provenance.at("simulated"), file.simulated ? "yes" : "no") << golden.id;
      EXPECT_EQ(golden.provenance.at("commit").size(), 40u) << golden.id << ": of changed sources";
    }
    EXPECT_TRUE(!ours || encode(file) == bytes) << name;
  }
}

}  // namespace repository_test
}  // namespace plumb::golden
