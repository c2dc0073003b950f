// Elements and figures. Text goes in as text: no part of a page is made from strings.

const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  return filled(node, attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Writes only changes, so that screen readers and selections are left in peace.
function write(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

function mark(node, name, value) {
  if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

// One child per item, in order. Children of known keys stay, with focus and selection.
function list(parent, items, keyOf, make, update) {
  const known = (parent.known ??= new Map());
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (wanted.has(key)) {
      continue;
    }
    wanted.add(key);
    let child = known.get(key);
    if (!child) {
      child = make(item);
      known.set(key, child);
    }
    update(child, item);
    if (child === place) {
      place = place.nextSibling;
    } else {
      parent.insertBefore(child, place);
    }
  }
  for (const [key, child] of known) {
    if (!wanted.has(key)) {
      child.remove();
      known.delete(key);
    }
  }
}

// The options of a choice; the chosen one stays while it is there.
function options(select, values) {
  const now = values.map(([value, text]) => `${value} ${text}`).join("\n");
  if (select.shown === now) {
    return;
  }
  select.shown = now;
  const chosen = select.value;
  select.replaceChildren(...values.map(([value, text]) => element("option", { value }, text)));
  if (values.some(([value]) => value === chosen)) {
    select.value = chosen;
  }
}

function rate(perSecond) {
  if (perSecond >= 1000) {
    return Math.round(perSecond).toLocaleString("en");
  }
  return perSecond >= 100 || perSecond === 0 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}

function percent(share) {
  if (share === null) {
    return "–";
  }
  const hundredths = 100 * share;
  return `${hundredths > 0 && hundredths < 10 ? hundredths.toFixed(1) : hundredths.toFixed(0)} %`;
}

function time(us) {
  if (us === null || us === undefined) {
    return "–";
  }
  if (us < 1e3) {
    return `${Math.round(us)} µs`;
  }
  const ms = us / 1e3;
  if (ms < 1e3) {
    return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  }
  return span(us / 1e6);
}

function span(seconds) {
  if (seconds < 120) {
    return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function bytes(count) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (count >= 1000 && at < units.length - 1) {
    count /= 1000;
    at += 1;
  }
  return `${at > 0 && count < 10 ? count.toFixed(1) : Math.round(count)} ${units[at]}`;
}

const clockOf = (date) => date.toTimeString().slice(0, 8);

const short = (hash) => hash.slice(0, 12);

// The last part of a file's path, without .wasm.
const component = (file) => file.split("/").pop().replace(/\.wasm$/, "");
