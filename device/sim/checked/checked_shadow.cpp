// SPDX-License-Identifier: Apache-2.0
//
// Pages of cells, created when first touched.
#include "device/sim/checked/checked_shadow.h"

namespace plumb::device::sim {

namespace {

constexpr std::size_t kMostPagesKept = 2048;

}  // namespace

Shadow::Page& Shadow::find_page(std::uintptr_t number) {
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) {
    page = std::make_unique<Page>();
    page->cells.resize(std::size_t{1} << (kPageShift - page->shift));
  }
  recent_[number % kRecent] = {number, page.get()};
  return *page;
}

void Shadow::refine(Page& page, int shift) {
  std::vector<Cell> finer(std::size_t{1} << (kPageShift - shift));
  for (std::size_t i = 0; i < finer.size(); ++i) finer[i] = page.cells[i >> (page.shift - shift)];
  page.cells.swap(finer);
  page.shift = shift;
}

void Shadow::trim(bool always) {
  if (!always && pages_.size() <= kMostPagesKept) return;
  pages_.clear();
  recent_.fill({});
}

}  // namespace plumb::device::sim
