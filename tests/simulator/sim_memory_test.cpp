// SPDX-License-Identifier: Apache-2.0
//
// Memory of the simulated device: poison, guard zones, quarantine, unmapped pages. Most tests are
// programs that access memory which they must not access; the device must detect it.
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "device/sim/grid/shared_memory.h"
#include "device/sim/memory/guard.h"
#include "device/sim/memory/memory.h"
#include "device/sim/simt_back_end.h"
#include "tests/support/sim_device_fixture.h"

namespace plumb::device {
namespace sim_memory_test {

using SimMemory = SimDeviceTest;

std::uint8_t* bytes_of(void* memory) { return static_cast<std::uint8_t*>(memory); }

TEST_F(SimMemory, IsAlignedAndStartsAsPoison) {
  open(Policy::early);
  for (const std::size_t bytes : {0, 1, 255, 256, 257, 100000}) {
    std::uint8_t* x = bytes_of(device->allocate(bytes, "x"));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x) % 256, 0u);
    EXPECT_FALSE(sim::compare_poison(x, bytes, sim::kFreshPoison));
  }
}

TEST(SimSharedMemory, NeighboursOnTheHeapAreNotPartOfIt) {
  std::vector<std::unique_ptr<sim::SharedMemory>> shared;
  std::vector<std::unique_ptr<std::byte[]>> neighbours;
  for (int i = 0; i < 50; ++i) {
    shared.push_back(std::make_unique<sim::SharedMemory>());
    shared.back()->start_kernel(100, 0);
    shared.back()->start_kernel(static_cast<std::size_t>(20000 + 77 * i), 0);
    neighbours.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(16 + 8 * i)));
  }
  for (const auto& memory : shared) {
    EXPECT_TRUE(memory->contains(memory->begin_address()));
    EXPECT_FALSE(memory->contains(memory->begin_address() + memory->size()));
    for (const auto& neighbour : neighbours) {
      EXPECT_FALSE(memory->contains(reinterpret_cast<std::uintptr_t>(neighbour.get())));
    }
  }
}

TEST_F(SimMemory, AddressesOfEmptyAllocationsDiffer) {
  open(Policy::early);
  EXPECT_NE(device->allocate(0, "a"), device->allocate(0, "b"));
}

// A new device may reuse pages of an earlier device, but must not show their contents.
TEST_F(SimMemory, ANewDeviceHoldsNothingOfAnEarlierOne) {
  constexpr std::size_t kBytes = 200000;
  for (const bool page_guards : {false, true, false}) {
    open(Policy::early, page_guards);
    device->fill(device->allocate(kBytes, "old"), 0x5A, kBytes, stream);
    device.reset();
    open(Policy::early);
    const std::uint8_t* x = bytes_of(device->allocate(100, "x"));
    EXPECT_FALSE(sim::compare_poison(x, 100, sim::kFreshPoison));
    EXPECT_TRUE(device->check_guards().empty());
    for (std::size_t beyond = 4096; beyond < kBytes; ++beyond) ASSERT_EQ(x[beyond], 0) << beyond;
    expect_error(
        [&] {
          launch(stream, "stray", [x] { *const_cast<std::uint8_t*>(x + (2 << 20)) = 1; });
          device->synchronize(stream);
        },
        "access to device memory outside every allocation");
  }
}

TEST_F(SimMemory, StrayWriteIntoAGuardZoneIsFoundWithLabelAndOffset) {
  open(Policy::early);
  std::uint8_t* x = bytes_of(device->allocate(100, "scores"));
  const std::uint8_t expected = x[103];
  const auto got = static_cast<std::uint8_t>(~expected);
  launch(stream, "stray", [x, got] { x[103] = got; });
  x[-5] ^= 1;
  x[-4] ^= 1;
  const std::vector<GuardDamage> damage = device->check_guards();
  ASSERT_EQ(damage.size(), 2u);
  EXPECT_EQ(damage[0].label, "scores");
  EXPECT_EQ(damage[0].offset, -5);
  EXPECT_EQ(damage[0].bytes, 2);
  EXPECT_EQ(damage[1].offset, 103);
  EXPECT_EQ(damage[1].bytes, 1);
  EXPECT_EQ(damage[1].expected, expected);
  EXPECT_EQ(damage[1].got, got);
  EXPECT_TRUE(device->check_guards().empty());  // the check has repaired the guard zones
}

TEST_F(SimMemory, GuardZonesReachOneKibibyteToEitherSide) {
  open(Policy::early);
  for (const std::ptrdiff_t offset : {-1024, -1, 256, 1279}) {
    std::uint8_t* x = bytes_of(device->allocate(256, "x"));
    x[offset] ^= 0x80;
    const std::vector<GuardDamage> damage = device->check_guards();
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_EQ(damage[0].offset, offset);
  }
}

TEST_F(SimMemory, AGuardZoneCopiedOntoAnotherPlaceShows) {
  open(Policy::early);
  std::uint8_t* x = bytes_of(device->allocate(256, "x"));
  std::memmove(x + 256, x + 260, 64);
  EXPECT_EQ(device->check_guards().size(), 1u);
}

TEST_F(SimMemory, DamageDoneBeforeAFreeIsStillReported) {
  open(Policy::early);
  std::uint8_t* x = bytes_of(device->allocate(256, "scores"));
  x[256] ^= 1;
  device->free(x);
  const std::vector<GuardDamage> damage = device->check_guards();
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].label, "scores");
}

TEST_F(SimMemory, UseAfterFreeReadsPoisonAndAWriteIsFound) {
  open(Policy::early);
  std::int32_t* x = ints(64, "scores");
  std::int32_t* seen = ints(1);
  device->fill(x, 0, 256, stream);
  device->free(x);
  EXPECT_NE(ints(64), x);  // freed memory is not reused at once
  launch(stream, "stale", [x, seen] {
    *seen = x[3];
    x[3] = 0;
  });
  EXPECT_EQ(*seen, sim::kFreedPoison * 0x10001);
  const std::vector<GuardDamage> damage = device->check_guards();
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].label, "scores (freed)");
  EXPECT_EQ(damage[0].offset, 12);
  EXPECT_EQ(damage[0].bytes, 4);
}

TEST_F(SimMemory, AWriteAfterFreeIsFoundWhenTheBlockLeavesQuarantine) {
  open(Policy::early);
  std::uint8_t* x = bytes_of(device->allocate(1000, "scores"));
  device->free(x);
  x[10] = 0;
  void* large = device->allocate(65 << 20, "large");
  device->free(large);
  EXPECT_EQ(device->allocate(1000, "next"), x);
  const std::vector<GuardDamage> damage = device->check_guards();
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].label, "scores (freed)");
  EXPECT_EQ(damage[0].offset, 10);
}

TEST_F(SimMemory, FreeOfAnythingButALiveAllocationIsNamed) {
  open(Policy::early);
  std::uint8_t* x = bytes_of(device->allocate(1000, "scores"));
  std::uint8_t* sparse = bytes_of(device->allocate_sparse(1000, "cache"));
  int foreign = 0;
  expect_error([&] { device->free(&foreign); },
               "invalid_argument: free: the pointer is not of this");
  expect_error([&] { device->free(x + 256); }, "free: the pointer is at offset 256 of 'scores'");
  device->free(nullptr);
  for (void* memory : {x, sparse}) {
    device->free(memory);
    expect_error([&] { device->free(memory); }, "has been freed already");
  }
  expect_error([&] { device->free(device->allocate_pinned(16)); }, "invalid_argument");
}

TEST_F(SimMemory, HasALimitThatSparseAllocationsDoNotCountTowards) {
  open(Policy::early);
  expect_error([&] { device->allocate((std::size_t{8} << 30) + 1, "huge"); },
               "out_of_memory: allocate 'huge'");
  device->allocate_sparse(std::size_t{64} << 30, "cache");
  expect_error([&] { device->allocate_sparse((std::size_t{64} << 30) + 1, "cache"); },
               "invalid_argument");
}

TEST_F(SimMemory, SparseAllocationReadsZeroAndReachesPastFourGibibytes) {
  open(Policy::early);
  constexpr std::size_t kBytes = std::size_t{64} << 30;
  std::uint8_t* cache = bytes_of(device->allocate_sparse(kBytes, "cache"));
  std::uint8_t* last = cache + kBytes - 1;
  EXPECT_EQ(*last, 0);
  device->fill(cache + (std::size_t{5} << 30), 7, 256, stream);
  launch(stream, "touch", [last] { *last = 3; });
  EXPECT_EQ(cache[(std::size_t{5} << 30) + 255], 7);
  EXPECT_EQ(*last, 3);
  EXPECT_TRUE(device->check_guards().empty());
  expect_error([&] { launch(stream, "stray", [last] { last[1] = 3; }); },
               "out_of_bounds: kernel 'stray', block (0, 0) thread 0");
}

TEST_F(SimMemory, PageGuardsNameTheKernelThatReadsPastTheEnd) {
  for (const std::size_t bytes : {1, 16, 4096, 4100, 100000}) {
    open(Policy::early, true);
    std::uint8_t* x = bytes_of(device->allocate(bytes, "scores"));
    EXPECT_FALSE(sim::compare_poison(x, bytes, sim::kFreshPoison));
    const std::size_t past = (bytes + 15) / 16 * 16;
    std::string error = error_of([&] { launch(stream, "reader", [=] { x[0] = x[past]; }); });
    EXPECT_EQ(error.find("out_of_bounds: kernel 'reader'"), 0u) << error;
    EXPECT_NE(error.find("offset " + std::to_string(past) + " of 'scores'"), std::string::npos)
        << error;
  }
}

TEST_F(SimMemory, PageGuardsLeaveGuardBytesUpToTheirPage) {
  open(Policy::early, true);
  std::uint8_t* x = bytes_of(device->allocate(100, "scores"));
  x[100] ^= 1;
  x[-1] ^= 1;
  EXPECT_EQ(device->check_guards().size(), 2u);
}

TEST_F(SimMemory, PageGuardsNameTheKernelThatUsesFreedMemory) {
  open(Policy::late, true);
  std::int32_t* x = ints(64, "scores");
  const GraphExec exec = captured([&] { launch(stream, "stale", [x] { x[3] = 0; }); });
  device->free(x);
  device->replay(exec, stream);
  expect_error([&] { device->synchronize(stream); },
               "use_after_free: kernel 'stale', block (0, 0)");
  expect_error([&] { device->synchronize(stream); }, "access to offset 12 of 'scores'");
}

// Writes through a bad pointer. The undefined behaviour sanitizer must not report it first.
__attribute__((noinline, no_sanitize("undefined"))) void store_one(std::int32_t* at) { *at = 1; }

// A page that belongs neither to the device nor to the heap.
struct ClosedPage {
  ClosedPage()
      : address(static_cast<std::int32_t*>(
            mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~ClosedPage() { munmap(address, 4096); }
  ClosedPage(const ClosedPage&) = delete;
  ClosedPage& operator=(const ClosedPage&) = delete;
  std::int32_t* address;
};

TEST_F(SimMemory, BadPointersAreErrorsOfTheKernelAndTheNextDeviceIsUnharmed) {
  for (int round = 0; round < 3; ++round) {
    open(Policy::early);
    auto** pointers = static_cast<std::int32_t**>(device->allocate(64, "pointers"));
    expect_error([&] { launch(stream, "wild", [pointers] { store_one(pointers[0]); }); },
                 "out_of_bounds: kernel 'wild', block (0, 0) thread 0");
    open(Policy::early);
    std::int32_t* null = nullptr;
    expect_error([&] { launch(stream, "null", [null] { store_one(null); }); },
                 "access through a null pointer");
    open(Policy::early);
    const ClosedPage page;
    expect_error([&] { launch(stream, "stray", [&page] { store_one(page.address); }); },
                 "access far outside of every allocation");
    open(Policy::early);
    std::int32_t* x = ints(1);
    launch(stream, "fine", [x] { *x = 1; });
    EXPECT_EQ(*x, 1);
  }
}

#if defined(__x86_64__)
// Reads at an address that the frame register holds. x86 signals such an access in another way.
__attribute__((noinline)) void load_by_frame_register(std::uintptr_t address) {
  asm volatile(
      "movq %%rbp, %%r8\n\t"
      "movq %0, %%rbp\n\t"
      "movb (%%rbp), %%r9b\n\t"
      "movq %%r8, %%rbp"
      :
      : "r"(address)
      : "r8", "r9", "memory");
}

TEST_F(SimMemory, APoisonedFrameRegisterIsAnErrorOfTheKernel) {
  constexpr std::uintptr_t kPoison = 0x5a5a5a5a5a5a5a5a;
  open(Policy::early);
  expect_error([&] { launch(stream, "framed", [] { load_by_frame_register(kPoison); }); },
               "out_of_bounds: kernel 'framed', block (0, 0) thread 0");
}
#endif

// One thread faults between two barriers, while the other threads wait at the second one.
void fault_after_barrier(std::int32_t* data, int faulty, std::ptrdiff_t offset) {
  data[kernels::thread_index()] = 0;
  kernels::block_sync();
  if (kernels::thread_index() == faulty) store_one(data + offset);
  kernels::block_sync();
  data[kernels::thread_index()] += 1;
}

TEST_F(SimMemory, APageFaultBetweenBarriersNamesItsThreadAndLeavesTheSimulatorUsable) {
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    for (const bool faulty : {true, false, true, false}) {
      Conditions conditions;
      conditions.order = order;
      conditions.page_guards = true;
      device = open_device("sim-gfx942", conditions);
      stream = device->create_stream();
      std::int32_t* x = ints(128, "scores");
      const auto run = [&] {
        const sim::LaunchShape shape{.block = 128};
        sim::enqueue(stream, kernels::make_call<fault_after_barrier>("fault_after_barrier", shape,
                                                                     x, 77, faulty ? 128 : 5));
      };
      if (faulty) {
        expect_error(run,
                     "block (0, 0) thread 77 (wave 1, lane 13): access to offset 512 of 'scores'");
      } else {
        run();
        for (int i = 0; i < 128; ++i) EXPECT_EQ(x[i], i == 5 ? 2 : 1);
      }
    }
  }
}

__attribute__((noinline)) int deep(int depth, volatile char* caller) {
  volatile char local[256];
  local[0] = caller[0];
  return depth == 0 ? local[0] : deep(depth - 1, local) + local[0];
}

TEST_F(SimMemory, AKernelThatNeedsTooMuchStackIsAnErrorOfTheKernel) {
  open(Policy::early);
  expect_error(
      [&] {
        launch(stream, "deep", [] {
          volatile char start = 1;
          deep(10000, &start);
        });
      },
      "out_of_memory: kernel 'deep', block (0, 0) thread 0");
  open(Policy::early);
  std::int32_t* x = ints(1);
  launch(stream, "fine", [x] { *x = 1; });
  EXPECT_EQ(*x, 1);
}

TEST(SimMemoryMap, FindsLiveAndFreedRegionsWithTheirGuardZones) {
  sim::Memory memory({});
  const auto find = [&](void* at, std::ptrdiff_t offset) {
    return memory.find(reinterpret_cast<std::uintptr_t>(at) + offset);
  };
  std::vector<void*> all;
  for (int i = 0; i < 100; ++i) all.push_back(memory.allocate(100 * i, std::to_string(i)));
  for (int i = 0; i < 100; i += 2) memory.free(all[i]);
  for (int i = 0; i < 100; ++i) {
    for (const std::ptrdiff_t offset : {-1024, -1, 0, 100 * i, 100 * i + 1023}) {
      const sim::MemoryMap::Region* region = find(all[i], offset);
      ASSERT_NE(region, nullptr);
      EXPECT_EQ(*region->label, std::to_string(i));
      EXPECT_EQ(region->freed, i % 2 == 0);
      EXPECT_EQ(region->end - region->begin, 100u * i);
    }
  }
  EXPECT_EQ(memory.find(reinterpret_cast<std::uintptr_t>(&memory)), nullptr);
}

TEST(SimMemoryMap, ReusesAddressesOnlyAfterQuarantine) {
  sim::Memory memory({.limit = 1 << 20, .quarantine = 64 << 10, .address_space = 4 << 20});
  for (int i = 0; i < 1000; ++i) {
    void* x = memory.allocate(50000, "x");
    std::memset(x, i, 50000);
    memory.free(x);
  }
  EXPECT_TRUE(memory.check_guards().empty());
}

}  // namespace sim_memory_test
}  // namespace plumb::device
