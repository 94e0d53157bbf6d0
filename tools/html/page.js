// SPDX-License-Identifier: Apache-2.0
// Helpers for nodes and numbers. Text of a report is only ever put into text nodes, never parsed as HTML.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// Replaces control characters, and those that change the direction of text.
function clean(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick" || name === "oninput" || name === "ontoggle") {
      element.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : clean(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return element;
}

function node(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function drawn(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function short(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

function counted(count, noun) {
  return count + " " + noun + (count === 1 ? "" : "s");
}

// A name with possible line breaks after underscores and slashes.
function breakable(name) {
  return clean(name).split(/(?<=[_/])/).flatMap((part, i) => i ? [node("wbr"), part] : [part]);
}

// A section with an anchor. The navigation lists all sections.
const sections = [];
function section(id, title, ...children) {
  sections.push([id, title]);
  return node("section", {id}, node("h2", {}, title), ...children);
}

// <details> whose content is made when it is first opened.
function folded(summary, make, open) {
  const element = node("details", {}, node("summary", {}, summary));
  let made = false;
  const ensure = () => {
    if (made || !element.open) return;
    made = true;
    element.append(make());
  };
  element.addEventListener("toggle", ensure);
  if (open) {
    element.open = true;
    ensure();
  }
  return element;
}

function copyLine(text) {
  const code = node("code", {}, text);
  const button = node("button", {type: "button", onclick: () => {
    const done = () => { button.textContent = "copied"; };
    const select = () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select);
    else select();
  }}, "copy");
  return node("div", {class: "command"}, code, button);
}

function table(heads, rows) {
  const cell = (name) => (value) => value instanceof Node ? node(name, {}, value)
      : node(name, {class: typeof value === "number" ? "number" : null},
             typeof value === "number" ? short(value) : value);
  return node("div", {class: "scroll"}, node("table", {},
    node("thead", {}, node("tr", {}, heads.map(cell("th")))),
    node("tbody", {}, rows.map((row) => node("tr", {}, row.map(cell("td")))))));
}
