// SPDX-License-Identifier: Apache-2.0
//
// Text form of a point, for command lines: "fill=exact,poison=huge,order=reverse,checked=yes". A
// part that is not named has its simplest value: exact fill, NaN poison, forward threads, early
// streams, zeros in dead rows. "plain" is the point with all simplest values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// One part of a point and its possible values, simplest first. `values` is empty if the part is a
// number; the simplest point does not set that number.
struct PointPart {
  std::string_view name;
  std::vector<std::string> values;
};
const std::vector<PointPart>& point_parts();

std::string spec_of(const Point& point);
// The value of one part, spelled as in point_parts(). A number that is not set is "".
std::string part_of(const Point& point, std::string_view name);
void set_part(Point& point, std::string_view name, std::string_view value);  // throws BadRow
Point point_from(std::string_view spec);                                     // throws BadRow

}  // namespace plumb::cases
