// SPDX-License-Identifier: Apache-2.0
//
// The caching allocator. With reuse at once a stale address holds plausible foreign bytes; with
// quarantine it holds poison. During a capture memory can come from a graph pool only.
#include "device/caching_allocator.h"

#include "tests/support/sim_device_fixture.h"

namespace plumb::device {
namespace caching_allocator_test {

using Reuse = CachingAllocator::Reuse;

class CachingAllocatorTest : public SimDeviceTest {
 protected:
  std::int32_t* ints(CachingAllocator& allocator, std::size_t count, const char* label = "x") {
    return static_cast<std::int32_t*>(allocator.allocate(count * sizeof(std::int32_t), label));
  }
  void write(std::int32_t* at, std::int32_t value) {
    launch(stream, "write", [at, value] { *at = value; });
  }
};

TEST_F(CachingAllocatorTest, ReuseAtOnceGivesAStaleAddressTheNextOwnersBytes) {
  open(Policy::late);
  CachingAllocator allocator(*device, stream, Reuse::at_once);
  std::int32_t* stale = ints(allocator, 64, "old");
  write(stale, 1);
  allocator.free(stale);
  std::int32_t* x = ints(allocator, 60, "new");
  EXPECT_EQ(x, stale);
  EXPECT_EQ(read(x), 1);  // the old value: a reused piece is not poisoned
  write(x, 2);
  EXPECT_EQ(read(stale), 2);
  write(stale, 3);
  EXPECT_EQ(read(x), 3);
}

TEST_F(CachingAllocatorTest, QuarantineGivesAStaleAddressPoisonAndFindsTheWrite) {
  for (const Policy policy : {Policy::early, Policy::late}) {
    open(policy);
    CachingAllocator allocator(*device, stream, Reuse::quarantine);
    std::int32_t* stale = ints(allocator, 64, "old");
    std::int32_t* copy = ints(allocator, 1);
    write(stale, 1);
    launch(stream, "in time", [stale, copy] { *copy = *stale; });
    allocator.free(stale);
    EXPECT_NE(ints(allocator, 64), stale);
    EXPECT_EQ(read(copy), 1);  // work enqueued before the free still reads the old value
    EXPECT_EQ(read(stale), kCachePoison * 0x10001);
    write(stale + 2, 5);
    const std::vector<GuardDamage> damage = allocator.check_quarantine();
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_EQ(damage[0].label, "old (freed)");
    EXPECT_EQ(damage[0].offset, 8);
    EXPECT_EQ(damage[0].bytes, 4);
    EXPECT_TRUE(allocator.check_quarantine().empty());
  }
}

TEST_F(CachingAllocatorTest, QuarantinedPieceIsUsedAgainAfterEnoughOthers) {
  open(Policy::early);
  CachingAllocator allocator(*device, stream, Reuse::quarantine);
  std::int32_t* x = ints(allocator, 64);
  allocator.free(x);
  allocator.free(allocator.allocate(65 << 20, "large"));
  EXPECT_EQ(ints(allocator, 64), x);
}

TEST_F(CachingAllocatorTest, TakesTheSmallestPieceThatSuffices) {
  open(Policy::early);
  CachingAllocator allocator(*device, stream, Reuse::at_once);
  void* large = allocator.allocate(4096, "large");
  void* small = allocator.allocate(1024, "small");
  allocator.free(large);
  allocator.free(small);
  EXPECT_EQ(allocator.allocate(1000, "a"), small);
  EXPECT_EQ(allocator.allocate(1000, "b"), large);  // takes the front of the large piece
  EXPECT_EQ(allocator.allocate(3072, "c"), static_cast<char*>(large) + 1024);
}

TEST_F(CachingAllocatorTest, JoinsFreeNeighbours) {
  open(Policy::early);
  CachingAllocator allocator(*device, stream, Reuse::at_once);
  void* whole = allocator.allocate(1024, "whole");
  allocator.free(whole);
  void* parts[4];
  for (void*& part : parts) part = allocator.allocate(256, "part");
  for (const int i : {0, 2, 3, 1}) allocator.free(parts[i]);
  EXPECT_EQ(allocator.allocate(1024, "whole"), whole);
}

TEST_F(CachingAllocatorTest, AllocationInsideACaptureIsServedByAPoolOnly) {
  open(Policy::early);
  CachingAllocator allocator(*device, stream, Reuse::at_once);
  allocator.free(allocator.allocate(1024, "cached"));
  device->begin_capture(stream);
  expect_error([&] { allocator.allocate(1024, "x"); },
               "capture_unsupported: allocate during capture");
  expect_error([&] { device->end_capture(stream); }, "capture_invalid");

  const CachingAllocator::Pool pool = allocator.create_pool();
  allocator.reserve(pool, 4096);
  const PoolScope scope(allocator, pool);
  device->begin_capture(stream);
  std::int32_t* x = static_cast<std::int32_t*>(allocator.allocate(1024, "x"));
  write(x, 7);
  const Graph graph = device->end_capture(stream);
  device->replay(device->instantiate(graph), stream);
  EXPECT_EQ(read(x), 7);

  device->begin_capture(stream);
  expect_error([&] { allocator.allocate(4096, "more than is left"); },
               "capture_unsupported: allocate");
  expect_error([&] { device->end_capture(stream); }, "capture_invalid");
}

TEST_F(CachingAllocatorTest, MemoryOfAPoolIsNobodyElsesUntilItIsReleased) {
  open(Policy::early);
  CachingAllocator allocator(*device, stream, Reuse::at_once);
  const CachingAllocator::Pool pool = allocator.create_pool(), other = allocator.create_pool();
  void* x = nullptr;
  {
    const PoolScope scope(allocator, pool);
    x = allocator.allocate(1024, "intermediate");
  }
  expect_error([&] { allocator.release_pool(pool); }, "release_pool: 'intermediate' is in use");
  allocator.free(x);
  EXPECT_NE(allocator.allocate(1024, "eager"), x);
  {
    const PoolScope scope(allocator, other);
    EXPECT_NE(allocator.allocate(1024, "other graph"), x);
  }
  {
    const PoolScope scope(allocator, pool);
    EXPECT_EQ(allocator.allocate(1024, "same graph"), x);
    allocator.free(x);
  }
  allocator.release_pool(pool);
  expect_error([&] { allocator.begin_pool(pool); },
               "invalid_argument: caching allocator: begin_pool");
  expect_error([&] { device->fill(x, 0, 4, stream); }, "use_after_free");
}

TEST_F(CachingAllocatorTest, QuarantineInsideACapturePoisonsAtEveryReplay) {
  open(Policy::late);
  CachingAllocator allocator(*device, stream, Reuse::quarantine);
  const CachingAllocator::Pool pool = allocator.create_pool();
  allocator.reserve(pool, 512);
  std::int32_t* seen = ints(allocator, 1, "seen");
  std::int32_t* outside = ints(allocator, 1, "outside");
  write(outside, 1);
  GraphExec exec = nullptr;
  {
    const PoolScope scope(allocator, pool);
    exec = captured([&] {
      std::int32_t* x = ints(allocator, 64);
      write(x, 7);
      allocator.free(x);
      launch(stream, "stale", [x, seen] { *seen = *x; });
      allocator.free(outside);
    });
  }
  for (int i = 0; i < 2; ++i) {
    device->fill(seen, 0, 4, stream);
    device->replay(exec, stream);
    EXPECT_EQ(read(seen), kCachePoison * 0x10001);
  }
  EXPECT_EQ(read(outside), 1);  // freed during the capture, but not as part of the graph
}

TEST_F(CachingAllocatorTest, FreeOfAnythingButAUsedPieceIsNamed) {
  open(Policy::early);
  for (const Reuse reuse : {Reuse::at_once, Reuse::quarantine}) {
    CachingAllocator allocator(*device, stream, reuse);
    char* x = static_cast<char*>(allocator.allocate(1024, "scores"));
    expect_error([&] { allocator.free(x + 256); },
                 "invalid_argument: caching allocator: free: not the");
    allocator.free(x);
    expect_error([&] { allocator.free(x); }, "free: 'scores' has been freed already");
  }
}

TEST_F(CachingAllocatorTest, GivesItsMemoryBackToTheDevice) {
  open(Policy::early);
  void* x = nullptr;
  {
    CachingAllocator allocator(*device, stream, Reuse::at_once);
    x = allocator.allocate(1024, "leaked");
  }
  expect_error([&] { device->fill(x, 0, 4, stream); }, "use_after_free");
}

}  // namespace caching_allocator_test
}  // namespace plumb::device
