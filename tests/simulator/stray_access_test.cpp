// SPDX-License-Identifier: Apache-2.0
//
// A bad address names its cause where plumb can know it: a pointer that was kept, an index, a size
// or a pointer that plumb itself wrote, a null pointer, or else the distance to the nearest block.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "device/filler.h"
#include "device/sim/memory/freed_ranges.h"
#include "device/sim/memory/guard.h"
#include "tests/support/sim_device_fixture.h"

namespace plumb::device {
namespace stray_access_test {

// The undefined behaviour sanitizer must not report a bad pointer first.
__attribute__((noinline, no_sanitize("undefined"))) void store_one(std::int32_t* at) { *at = 1; }

class StrayAccess : public SimDeviceTest {
 protected:
  // Runs a kernel whose arguments are the members of `body`.
  template <class Body>
  std::string error_in(const Body& body) {
    sim::KernelCall call;
    call.name = "stray";
    call.arguments = std::make_shared<const Body>(body);
    call.argument_bytes = sizeof body;
    call.invoke = [](const void* arguments) { (*static_cast<const Body*>(arguments))(); };
    return error_of([&] { sim::enqueue(stream, std::move(call)); });
  }

  template <class Body>
  void expect_cause(const Body& body, const std::string& kind, const std::string& says) {
    const std::string error = error_in(body);
    EXPECT_EQ(error.find(kind + ": kernel 'stray'"), 0U) << error;
    EXPECT_NE(error.find(says), std::string::npos) << says << "\n" << error;
  }
};

TEST_F(StrayAccess, APointerOfAnEarlierDeviceIsNamedWithItsBlock) {
  for (const bool page_guards : {false, true}) {
    open(Policy::early, page_guards);
    device->allocate(4 << 20, "large");
    std::int32_t* kept = ints(64, "kept");
    open(Policy::early, page_guards);  // has other addresses: the earlier device still existed
    expect_cause([=] { store_one(kept); }, "use_after_free", ": access to 'kept' of an earlier ");
    open(Policy::early, page_guards);
    device->allocate(4 << 20, "large");
    kept = ints(64, "again");
    device.reset();
    open(Policy::early, page_guards);
    ints(64, "scores");
    expect_cause([=] { store_one(kept); }, "use_after_free",
                 "; an argument points into 'again' of an earlier device");
  }
}

// With page guards a block of an earlier device often lies where the closed pages of this one are.
TEST_F(StrayAccess, AWrongIndexIsNotTakenForAKeptPointer) {
  for (const bool page_guards : {false, true}) {
    open(Policy::early, page_guards);
    device->allocate(64 << 20, "kept");
    device.reset();
    open(Policy::early, page_guards);
    std::int32_t* x = ints(64, "scores");
    const std::int64_t far = 1 << 20;
    const std::string error = error_in([=] { store_one(x + far); });
    EXPECT_EQ(error.find("out_of_bounds: "), 0U) << error;
    EXPECT_NE(error.find(" outside every allocation, 4194048 bytes behind 'scores'"),
              std::string::npos)
        << error;
    EXPECT_EQ(error.find("kept"), std::string::npos) << error;
  }
}

TEST_F(StrayAccess, AnIndexThatWasReadFromUnwrittenMemoryIsNamed) {
  open(Policy::early);
  std::int32_t* x = ints(64, "scores");
  const std::int32_t* index = ints(64, "indices");
  expect_cause([=] { store_one(x + index[3] + 5); }, "out_of_bounds",
               "; the index 0x7ff57ffa into 'scores' is plumb's poison of memory that was not");
  open(Policy::early);
  x = ints(64, "scores");
  std::int32_t* output = ints(64, "out");
  std::memset(output, kHugePoison, 256);
  expect_cause([=] { store_one(x + output[0]); }, "out_of_bounds", "the index 0x7b7b7b7b into");
}

TEST_F(StrayAccess, ASizeThatTheLauncherReadTooEarlyIsNamed) {
  open(Policy::early, true);
  std::int32_t* x = ints(64, "scores");
  const std::int32_t size = *ints(1, "size");
  expect_cause(
      [=] {
        for (std::int32_t i = 0; i < size; ++i) store_one(x + i);
      },
      "out_of_bounds", "; its arguments hold plumb's poison of memory that was not written");
}

TEST_F(StrayAccess, APointerThatPlumbWroteIsNamed) {
  const auto expect = [&](int byte, const std::string& kind, const std::string& says) {
    open(Policy::early);
    auto** pointers = static_cast<std::int32_t**>(device->allocate(64, "pointers"));
    if (byte != 0) std::memset(pointers, byte, 64);
    if (kind == "use_after_free") {
      sim::lay_poison(reinterpret_cast<std::uint8_t*>(pointers), 64, sim::kFreedPoison);
    }
    expect_cause([=] { store_one(pointers[0]); }, kind, "address that cannot exist: " + says);
  };
  expect(0, "out_of_bounds", "plumb's poison of memory that was not written");
  expect(kGoneParameter, "out_of_bounds", "the bytes that plumb writes over parameters");
  expect(0, "use_after_free", "plumb's poison of freed memory");
}

TEST_F(StrayAccess, AnOffsetFromANullPointerIsNamed) {
  open(Policy::early);
  std::int32_t* null = nullptr;
  expect_cause([=] { store_one(null); }, "out_of_bounds", "access through a null pointer");
  open(Policy::early);
  const std::int64_t four = 4;
  expect_cause([=] { store_one(null + four); }, "out_of_bounds",
               "access through a null pointer, at byte 16 from it");
}

TEST(FreedRanges, KeepsTheNewestAndForgetsTheOldest) {
  sim::remember_freed({1000, 2000, "first", 1});
  sim::remember_freed({1500, 2500, "second", 1});
  EXPECT_EQ(sim::find_freed(1200)->label, "first");
  EXPECT_EQ(sim::find_freed(1700)->label, "second");
  EXPECT_EQ(sim::find_freed_at(1000)->label, "first");
  EXPECT_FALSE(sim::find_freed_at(1700));
  EXPECT_FALSE(sim::find_freed(2500));
  for (int i = 0; i < 4095; ++i) sim::remember_freed({10, 20, "other", 1});
  EXPECT_FALSE(sim::find_freed(1200));
  EXPECT_TRUE(sim::find_freed(1700));
}

}  // namespace stray_access_test
}  // namespace plumb::device
