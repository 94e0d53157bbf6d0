// SPDX-License-Identifier: Apache-2.0
// Picture of a wrong tensor: error / bound by row and column, its histogram, expected and stored values.

let hatches = 0;

// Diagonal hatching marks elements beyond the bound, so that colour is not needed.
function hatch() {
  const id = "hatch-" + hatches++;
  const line = drawn("path", {d: "M0 5L5 0", stroke: "var(--card)", "stroke-width": 1.1});
  return [drawn("defs", {}, drawn("pattern", {id, width: 5, height: 5, patternUnits: "userSpaceOnUse"}, line)),
          "url(#" + id + ")"];
}

function levelStyle(level, p) {
  const last = p.levels.length - 1;
  if (level === 0) return "fill:var(--none-back)";
  if (level <= p.bound_level) return "fill:var(--bar);fill-opacity:" + (0.15 + 0.6 * level / p.bound_level).toFixed(2);
  if (level === last) return "fill:var(--edge)";
  const over = Math.min(1, (level - p.bound_level) / 24);
  return "fill:var(--bad);fill-opacity:" + (0.6 + 0.4 * over).toFixed(2);
}

function levelText(level, p) {
  if (level < 0) return "nothing compared";
  if (p.exact) return level ? "differs" : "equal";
  if (level === 0) return "error 0";
  if (level === p.levels.length - 1) return "error / bound infinite (NaN, or a bound of 0)";
  if (level === p.levels.length - 2) {  // holds all that is larger, too
    return "largest error / bound beyond " + short(Math.pow(2, (level - 1 - p.bound_level) / 2));
  }
  return "largest error / bound at most " + short(Math.pow(2, (level - p.bound_level) / 2));
}

// First index of bin i, when `total` indices are in `bins` bins.
function binBegin(i, bins, total) {
  return Math.ceil(i * total / bins);
}

function binText(i, bins, total) {
  const begin = binBegin(i, bins, total), end = binBegin(i + 1, bins, total) - 1;
  return begin >= end ? String(begin) : begin + "-" + end;
}

function axisTicks(bins, most) {
  const every = Math.max(1, Math.ceil(bins / most)), ticks = [];
  for (let i = 0; i < bins; i += every) ticks.push(i);
  return ticks;
}

// Dashed lines after every `size` of `total` indices; none if there would be more than 40.
function groupLines(size, total, length, make) {
  if (!(size > 1) || size >= total || total / size > 40) return [];
  const lines = [];
  for (let at = size; at < total; at += size) lines.push(make(at / total * length));
  return lines;
}

function scaleGroup(p) {
  const found = /of (\d+)/.exec(p.scales || "");
  return found ? Number(found[1]) : 0;
}

function heatMap(p) {
  const high = p.cells.length, wide = Math.max(...p.cells.map((line) => line.length), 1);
  const room = Math.max(190, Math.min(460, innerWidth - 170));
  const w = Math.min(30, room / wide), h = Math.max(5, Math.min(20, 330 / high));
  const left = 56, top = 10, W = w * wide, H = h * high;
  const [defs, pattern] = hatch();
  const cells = [], marks = [], wrongColumns = new Set();
  for (let y = 0; y < high; ++y) {
    const levels = [...p.cells[y]].map((c) => p.levels.indexOf(c));
    if (levels.some((level) => level > p.bound_level)) {
      marks.push(drawn("rect", {x: left - 7, y: top + y * h + 0.5, width: 5, height: h - 1, class: "over"}));
    }
    for (let x = 0, end = 0; x < levels.length; x = end) {
      for (end = x + 1; end < levels.length && levels[end] === levels[x];) ++end;
      if (levels[x] < 0) continue;
      const place = {x: left + x * w, y: top + y * h, width: (end - x) * w, height: h};
      const title = drawn("title", {}, "rows " + binText(y, high, p.rows) + ", columns " +
        binBegin(x, wide, p.columns) + "-" + (binBegin(end, wide, p.columns) - 1) + ": " + levelText(levels[x], p));
      cells.push(drawn("rect", {...place, style: levelStyle(levels[x], p)}, title));
      if (levels[x] <= p.bound_level) continue;
      cells.push(drawn("rect", {...place, fill: pattern, "pointer-events": "none"}));
      for (let i = x; i < end; ++i) wrongColumns.add(i);
    }
  }
  for (const x of wrongColumns) {
    marks.push(drawn("rect", {x: left + x * w + 0.5, y: top - 7, width: w - 1, height: 5, class: "over"}));
  }
  const lines = [
    ...groupLines(p.group_rows, p.rows, H, (y) =>
      drawn("path", {d: "M" + left + " " + (top + y) + "h" + W, class: "group"})),
    ...groupLines(scaleGroup(p), p.columns, W, (x) =>
      drawn("path", {d: "M" + (left + x) + " " + top + "v" + H, class: "group"}))];
  if (p.live_rows < p.rows) {
    const y = top + p.live_rows / p.rows * H;
    lines.push(drawn("path", {d: "M" + (left - 8) + " " + y + "h" + (W + 20), class: "edge"}),
               drawn("path", {d: "M" + (left + W + 5) + " " + y + "V" + (top + H) + "h-4", class: "edge"}),
               drawn("text", {x: left + W + 12, y: Math.min(top + H, (y + top + H) / 2 + 4)}, "padded"));
  }
  const labels = [
    ...axisTicks(high, 10).map((y) => drawn("text", {x: left - 11, y: top + y * h + Math.min(h, 11), "text-anchor": "end"},
                                            String(binBegin(y, high, p.rows)))),
    ...axisTicks(wide, room / 62).map((x) => drawn("text", {x: left + x * w, y: top + H + 13}, String(binBegin(x, wide, p.columns)))),
    drawn("text", {x: left, y: top + H + 29}, "column"),
    drawn("text", {x: 0, y: 8}, "row")];
  const width = left + W + (p.live_rows < p.rows ? 58 : 26), height = top + H + 34;
  return drawn("svg", {viewBox: "0 0 " + width + " " + height, width, height, role: "img",
                       "aria-label": "error over bound by row and column of " + p.tensor},
               defs, cells, drawn("rect", {x: left, y: top, width: W, height: H, class: "frame"}), lines, marks, labels);
}

function sample(style, hatched) {
  const [defs, pattern] = hatch();
  return drawn("svg", {width: 18, height: 12, viewBox: "0 0 18 12", "aria-hidden": "true"}, defs,
               drawn("rect", {width: 18, height: 12, style}), hatched ? drawn("rect", {width: 18, height: 12, fill: pattern}) : null,
               drawn("rect", {x: 0.5, y: 0.5, width: 17, height: 11, class: "frame"}));
}

function mapLegend(p) {
  const item = (mark, text) => node("span", {}, mark, text);
  const bar = drawn("svg", {width: 6, height: 12, viewBox: "0 0 6 12", "aria-hidden": "true"},
                    drawn("rect", {width: 5, height: 12, class: "over"}));
  const has = (test) => p.cells.some((line) => [...line].some((c) => test(p.levels.indexOf(c))));
  const last = p.levels.length - 1;
  const items = p.exact
    ? [item(sample(levelStyle(0, p)), "equal"), item(sample(levelStyle(last, p), true), "differs")]
    : [item(sample(levelStyle(0, p)), "error 0"), item(sample(levelStyle(10, p)), "1/32 of the bound"),
       item(sample(levelStyle(p.bound_level, p)), "at the bound"),
       item(sample(levelStyle(p.bound_level + 1, p), true), "beyond the bound"),
       item(sample(levelStyle(p.bound_level + 24, p), true), "4096 \u00d7 the bound")];
  if (!p.exact && has((level) => level === last)) items.push(item(sample(levelStyle(last, p), true), "infinite: NaN, or bound 0"));
  if (has((level) => level < 0)) items.push(item(sample("fill:none"), "nothing compared"));
  items.push(item(bar, "row or column with a wrong element"));
  const notes = [];
  if (p.live_rows < p.rows) notes.push("Rows from " + p.live_rows + " on are padding.");
  if (p.group_rows > 1 && p.group_rows < p.rows) {
    notes.push("Every " + p.group_rows + " rows are one index of the first dimension" +
               (p.rows / p.group_rows <= 40 ? " (dashed lines)." : "."));
  }
  if (scaleGroup(p) > 1) notes.push("Scales: " + p.scales + " (dashed lines between columns).");
  if (p.exact) notes.push("An element with several right values (a code at a rounding boundary, tied choices) may differ here without an error.");
  return node("div", {}, node("div", {class: "legend"}, items), notes.length ? node("p", {class: "soft small"}, notes.join(" ")) : null);
}

// Bars for error 0, for each octave of error / bound, and for infinity. Heights are logarithmic.
function histogram(p) {
  const counts = p.counts.split(" ").map(Number);
  let begin = counts.findIndex((n) => n > 0), end = counts.length;
  while (end > 0 && !counts[end - 1]) --end;
  if (begin < 0) begin = end = -p.first_octave;
  begin = Math.min(begin, -p.first_octave - 1);
  end = Math.max(end, -p.first_octave + 2);
  const bars = [{name: "0", text: "error 0", count: p.right}];
  for (let i = begin; i < end; ++i) {
    const octave = i + p.first_octave;
    const least = "2^" + (octave - 1), most = "2^" + octave;  // the outermost bars hold all beyond, too
    const text = i === 0 ? "at most " + most : i === counts.length - 1 ? "beyond " + least : "in (" + least + ", " + most + "]";
    bars.push({octave, over: octave > 0, text: "error / bound " + text, count: counts[i]});
  }
  if (p.infinite) bars.push({name: "inf", over: true, text: "infinite", count: p.infinite});
  const w = Math.min(20, Math.max(220, Math.min(340, innerWidth - 90)) / bars.length), H = 120, top = 20, left = 6;
  const most = Math.log10(1 + Math.max(...bars.map((bar) => bar.count), 1));
  const [defs, pattern] = hatch(), shapes = [];
  let edge = 0;
  bars.forEach((bar, i) => {
    const height = bar.count ? Math.max(3, Math.log10(1 + bar.count) / most * H) : 0;
    const place = {x: left + i * w + 1, y: top + H - height, width: w - 2, height};
    shapes.push(drawn("rect", {...place, class: bar.name === "0" ? "exact" : bar.over ? "over" : "fine"},
                      drawn("title", {}, bar.text + ": " + counted(bar.count, "element"))));
    if (bar.over) shapes.push(drawn("rect", {...place, fill: pattern, "pointer-events": "none"}));
    if (bar.octave === 0) edge = left + (i + 1) * w;
    const label = bar.name || (bar.octave % 4 === 0 && bar.octave !== 0 ? "2^" + bar.octave : "");
    if (label) shapes.push(drawn("text", {x: left + (i + (bar.name ? 0.5 : 1)) * w, y: top + H + 13, "text-anchor": "middle"}, label));
  });
  shapes.push(drawn("path", {d: "M" + edge + " " + (top - 4) + "V" + (top + H), class: "edge"}),
              drawn("text", {x: edge, y: top + H + 13, "text-anchor": "middle"}, "1"),
              drawn("text", {x: edge - 4, y: 10, "text-anchor": "end"}, "right"),
              drawn("text", {x: edge + 4, y: 10, class: "bad"}, "wrong"));
  const width = Math.max(left + bars.length * w + 24, edge + 44), height = top + H + 18;
  return drawn("svg", {viewBox: "0 0 " + width + " " + height, width, height, role: "img",
                       "aria-label": "histogram of error over bound"}, defs, shapes);
}

function pairsOf(text) {
  return (text || "").split(" ").filter(Boolean).map((pair) => pair.split(":").map(Number));
}

function scatter(p) {
  const finite = ([x, y]) => Number.isFinite(x) && Number.isFinite(y);
  const wrong = pairsOf(p.wrong_values).filter(finite), right = pairsOf(p.right_values).filter(finite);
  const all = [...wrong, ...right].flat();
  if (all.length < 4) return null;
  let low = Math.min(...all), high = Math.max(...all);
  if (low === high) { low -= 1; high += 1; }
  const S = 190, left = 10, top = 8, at = (v) => (v - low) / (high - low) * S;
  const x = (v) => (left + at(v)).toFixed(1), y = (v) => (top + S - at(v)).toFixed(1);
  const shapes = [drawn("rect", {x: left, y: top, width: S, height: S, class: "frame"}),
                  drawn("path", {d: "M" + left + " " + (top + S) + "l" + S + " -" + S, class: "group"})];
  for (const [a, b] of right) shapes.push(drawn("circle", {cx: x(a), cy: y(b), r: 2.2, class: "fine"}));
  for (const [a, b] of wrong) {
    shapes.push(drawn("path", {d: "M" + x(a) + " " + y(b) + "m-3 -3l6 6m0 -6l-6 6", class: "cross"}));
  }
  shapes.push(drawn("text", {x: left, y: top + S + 14}, short(Number(low.toPrecision(3)))),
              drawn("text", {x: left + S / 2, y: top + S + 14, "text-anchor": "middle"}, "expected"),
              drawn("text", {x: left + S, y: top + S + 14, "text-anchor": "end"}, short(Number(high.toPrecision(3)))));
  return drawn("svg", {viewBox: "0 0 " + (left + S + 10) + " " + (top + S + 20), width: left + S + 10, height: top + S + 20,
                       role: "img", "aria-label": "expected values against stored ones"}, shapes);
}

function worstTable(p) {
  const heads = p.exact ? ["element", "expected", "stored"] : ["element", "expected", "stored", "bound", "error / bound"];
  return table(heads, p.worst.map((one) => [one.at, one.expected, one.got, one.bound, one.ratio].slice(0, heads.length)));
}

function picture(p) {
  const figure = (text, drawing, ...more) => drawing ? node("figure", {}, node("figcaption", {}, text), drawing, ...more) : null;
  const wrong = p.cells.some((line) => [...line].some((c) => p.levels.indexOf(c) > p.bound_level));
  const shape = p.shape.join(" \u00d7 ") + " " + p.dtype + (p.format === "number" ? "" : ", " + p.format);
  return node("div", {class: "picture"},
    node("h3", {}, "Tensor ", node("code", {}, p.tensor), node("span", {class: "soft"}, " (" + shape + "), in the first wrong launch")),
    wrong ? null : node("p", {}, "No element is beyond its bound: another check of this tensor failed (norm, direction, bias, or equal bits)."),
    node("div", {class: "charts"},
      figure(p.exact ? "Elements that differ, by row and column" : "Largest error / bound, by row and column", heatMap(p), mapLegend(p)),
      p.exact ? null : figure("Elements by error / bound (heights are logarithms of counts)", histogram(p)),
      figure("Stored (up) against expected: \u00d7 wrong, \u2022 right; on the dashed line they are equal", scatter(p))),
    p.worst.length ? folded("The worst element of each of " + counted(p.worst.length, "row"), () => worstTable(p), true) : null);
}
