// SPDX-License-Identifier: Apache-2.0
//
// A point in words, for command lines: "fill=exact,poison=huge,order=reverse,checked=yes". What is
// not named is as tame as it can be: exact fill, NaN poison, threads forward, early streams, dead
// rows of zeros. "plain" is all of that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// A part of a point: its values, the tamest first. None: it is a number, of which there is none in
// the tamest point.
struct PointPart {
  std::string_view name;
  std::vector<std::string> values;
};
const std::vector<PointPart>& point_parts();

std::string spec_of(const Point& point);
// The value of one part, as in point_parts; a number that is not there is "".
std::string part_of(const Point& point, std::string_view name);
void set_part(Point& point, std::string_view name, std::string_view value);  // throws BadRow
Point point_from(std::string_view spec);                                     // throws BadRow

}  // namespace plumb::cases
