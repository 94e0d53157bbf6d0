// SPDX-License-Identifier: Apache-2.0
//
// Pages of cells, made when first touched.
#include "device/sim/checked/checked_shadow.h"

#include <algorithm>
#include <bit>

namespace plumb::device::sim {

namespace {

constexpr std::size_t kMostPagesKept = 2048;

}  // namespace

Shadow::Page& Shadow::page_at(std::uintptr_t number) {
  Recent& recent = recent_[number % kRecent];
  if (recent.page != nullptr && recent.number == number) return *recent.page;
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    page->cells.resize(std::size_t{1} << (kPageShift - page->shift));
  }
  recent = {number, page.get()};
  return *page;
}

void Shadow::refine(Page& page, int shift) {
  std::vector<Cell> finer(std::size_t{1} << (kPageShift - shift));
  for (std::size_t i = 0; i < finer.size(); ++i) finer[i] = page.cells[i >> (page.shift - shift)];
  page.cells.swap(finer);
  page.shift = shift;
}

Finding Shadow::access(const Access& access, const Clock& clock, int thread, std::uint32_t floor,
                       bool needs_write) {
  Finding finding;
  const Stamp now = clock.now(thread, access.atomic);
  const std::uintptr_t end = access.address + access.bytes;
  const int shift = std::min(2, std::countr_zero(access.address | end));
  for (std::uintptr_t at = access.address; at < end;) {
    Page& page = page_at(at >> kPageShift);
    if (shift < page.shift) refine(page, shift);
    Cell& cell = page.cells[(at & ((std::uintptr_t{1} << kPageShift) - 1)) >> page.shift];
    finding.address = at;
    if (!check(cell, access, clock, thread, floor, needs_write, finding)) return finding;
    remember(cell, access, clock, thread, floor, now);
    at += std::uintptr_t{1} << page.shift;
  }
  return finding;
}

bool Shadow::check(const Cell& cell, const Access& access, const Clock& clock, int thread,
                   std::uint32_t floor, bool needs_write, Finding& finding) {
  const auto races = [&](const Stamp& other) {
    return !(access.atomic && other.atomic) && !clock.is_before(other, thread, floor);
  };
  const auto found = [&](const Stamp& other, bool wrote) {
    finding.kind = Finding::Kind::race;
    finding.other = other;
    finding.other_wrote = wrote;
    return false;
  };
  if (races(cell.writer)) return found(cell.writer, true);
  for (const Stamp& reader : cell.readers)
    if ((access.write || reader.atomic) && races(reader)) return found(reader, reader.atomic);
  const bool reads = !access.write || (access.atomic && access.uses_old_value);
  if (reads && needs_write && cell.writer.segment < floor) {
    finding.kind = Finding::Kind::uninitialized;
    return false;
  }
  return true;
}

void Shadow::remember(Cell& cell, const Access& access, const Clock& clock, int thread,
                      std::uint32_t floor, const Stamp& now) {
  if (access.write) cell.writer = now;
  if (access.write && !access.atomic) {
    cell.readers = {};
    return;
  }
  auto& [a, b] = cell.readers;
  if (clock.is_before(a, thread, floor)) a = {};
  if (clock.is_before(b, thread, floor)) b = {};
  if (a.segment == 0)
    a = now;
  else if (b.segment == 0 || (clock.may_meet(a, b) && !clock.may_meet(a, now)))
    b = now;
}

void Shadow::trim(bool always) {
  if (!always && pages_.size() <= kMostPagesKept) return;
  pages_.clear();
  recent_.fill({});
}

}  // namespace plumb::device::sim
