// Apps: goodput, violations, quality and latency, with the last two minutes as lines.

const HISTORY = 120;
const LINE = { width: 120, height: 30 };

const histories = new Map();

function remember(key, sample) {
  const samples = histories.get(key) ?? [];
  samples.push(sample);
  if (samples.length > HISTORY) {
    samples.shift();
  }
  histories.set(key, samples);
  return samples;
}

function line(kind) {
  const area = drawing("polygon", { class: `area ${kind}` });
  const stroke = drawing("polyline", { class: `stroke ${kind}` });
  const view = `0 0 ${LINE.width} ${LINE.height}`;
  const attributes = { viewBox: view, preserveAspectRatio: "none", class: "line", "aria-hidden": "true" };
  return drawing("svg", attributes, area, stroke);
}

function trace(svg, values, top) {
  const step = LINE.width / (HISTORY - 1);
  const from = HISTORY - values.length;
  const points = values.map((value, at) => {
    const height = Math.min((value ?? 0) / Math.max(top, 1e-9), 1) * (LINE.height - 3);
    return `${((from + at) * step).toFixed(1)},${(LINE.height - 1.5 - height).toFixed(1)}`;
  });
  const [area, stroke] = svg.children;
  stroke.setAttribute("points", points.join(" "));
  const left = (from * step).toFixed(1);
  area.setAttribute("points", `${left},${LINE.height} ${points.join(" ")} ${LINE.width},${LINE.height}`);
}

function figure(name, className) {
  const value = element("dd");
  const node = element("div", { class: `figure ${className}` }, element("dt", {}, name), value);
  node.value = value;
  return node;
}

function makeApp() {
  const card = element("article", { class: "card app" });
  card.name = element("h3");
  card.where = element("p", { class: "where" });
  card.goodput = figure("goodput, requests/s", "large");
  card.violations = figure("violations", "large violations");
  card.quality = figure("expected quality", "small");
  card.median = figure("latency p50", "small");
  card.p99 = figure("latency p99", "small");
  card.deadline = figure("deadline", "small");
  card.goodLine = line("goodput");
  card.badLine = line("violations");
  card.goodput.append(card.goodLine);
  card.violations.append(card.badLine);
  card.why = element("p", { class: "why" });
  const large = element("dl", { class: "figures" }, card.goodput, card.violations);
  const small = element("dl", { class: "figures" }, card.quality, card.median, card.p99, card.deadline);
  card.append(element("header", {}, card.name, card.where), large, card.why, small);
  return card;
}

function updateApp(card, item) {
  const { app, pool, goodput, violations } = item;
  const [median, , p99] = app.latency_us ?? [null, null, null];
  mark(card, "data-level", level(violations));
  write(card.name, app.app);
  write(card.where, `${pool.apps[app.app] ?? ""} in pool ${pool.pool}`.trim());
  write(card.goodput.value, rate(goodput));
  write(card.violations.value, percent(violations));
  write(card.quality.value, app.quality === null ? "–" : percent(app.quality));
  write(card.median.value, time(median));
  write(card.p99.value, time(p99));
  mark(card.p99, "data-over", p99 !== null && p99 > app.slo_us);
  write(card.deadline.value, time(app.slo_us));
  write(card.why, attribution(item));
  const samples = remember(item.key, { goodput, violations });
  const top = Math.max(...samples.map((sample) => sample.goodput));
  trace(card.goodLine, samples.map((sample) => sample.goodput), top);
  trace(card.badLine, samples.map((sample) => sample.violations), 1);
}

function makeTotals(parent) {
  parent.goodput = figure("goodput, requests/s", "huge");
  parent.violations = figure("violations", "huge violations");
  parent.quality = figure("expected quality", "huge");
  parent.waiting = figure("waiting for a worker", "huge");
  parent.append(element("dl", { class: "figures" }, parent.goodput, parent.violations, parent.quality, parent.waiting));
}

function showApps(status, apps) {
  list(byId("apps"), apps, (item) => item.key, makeApp, updateApp);
  const totals = byId("totals");
  if (!totals.goodput) {
    makeTotals(totals);
  }
  const ended = apps.reduce((sum, item) => sum + item.ended, 0);
  const violated = apps.reduce((sum, item) => sum + item.ended * (item.violations ?? 0), 0);
  const violations = ended > 0 ? violated / ended : null;
  const rated = apps.filter((item) => item.app.quality !== null);
  const weight = rated.reduce((sum, item) => sum + item.goodput, 0);
  const quality = rated.reduce((sum, item) => sum + item.goodput * item.app.quality, 0);
  write(totals.goodput.value, rate(apps.reduce((sum, item) => sum + item.goodput, 0)));
  write(totals.violations.value, percent(violations));
  write(totals.quality.value, weight > 0 ? percent(quality / weight) : "–");
  write(totals.waiting.value, status.pools.reduce((sum, pool) => sum + pool.pending, 0).toLocaleString("en"));
  mark(totals, "data-level", level(violations));
}
