// Policies: a card per pool with the policy that serves, its shadow and its canary, and their orders.

function button(text, kind, act) {
  const node = element("button", { type: "button", class: kind }, text);
  node.addEventListener("click", act);
  return node;
}

// Orders hold for the version that the operator sees: with another one the server refuses them.
function order(card, verb, title, text, body = {}) {
  const { pool } = card.now;
  const hash = pool.policies.active?.hash;
  const expect = verb === "shadow" || !hash ? {} : { expect: hash };
  propose({ pool: pool.pool, verb, title, text, body: { ...body, ...expect } });
}

const serves = (card) => `Pool ${card.now.pool.pool} is served by ${card.now.pool.policy}.`;

function swapTo(card) {
  const policy = card.choice.value;
  order(card, "swap", `Swap to ${policy}`, `${serves(card)} ${policy} serves every request from then on.`, { policy });
}

function canaryOf(card) {
  const policy = card.choice.value;
  const text = `${policy} gets a tenth of the requests. It is promoted if it is better and rolled back if it is worse.`;
  order(card, "canary", `Canary of ${policy}`, text, { policy });
}

function shadowOf(card) {
  const policy = card.choice.value;
  order(card, "shadow", `Shadow ${policy}`, `${policy} is asked about the same windows. It serves no request.`, { policy });
}

function promote(card) {
  const { canary } = card.now.pool.policies;
  const candidate = canary?.runs ? canary.candidate.policy : (card.now.pool.shadow?.policy ?? "the shadow");
  order(card, "promote", `Promote ${candidate}`, `${serves(card)} ${candidate} serves every request from then on.`);
}

function rollBack(card) {
  if (card.now.pool.policies.canary?.runs) {
    order(card, "rollback", "Roll the canary back", `${serves(card)} The canary ends.`);
    return;
  }
  const version = card.versions.value;
  const known = card.now.pool.policies.history.find((one) => one.hash === version);
  const name = known ? `${known.policy} (${short(known.hash)})` : "the version before";
  order(card, "rollback", `Roll back to ${name}`, `${serves(card)} ${name} serves again.`, version ? { version } : {});
}

function choice(label, id) {
  const select = element("select", { id });
  const node = element("label", { for: id }, label);
  return [node, select];
}

function makePolicy({ pool }) {
  const card = element("article", { class: "card policy" });
  card.where = element("p", { class: "where" });
  card.serving = element("h3");
  card.about = element("p", { class: "about" });
  const [choose, components] = choice("Component", `component-${pool.pool}`);
  const [back, versions] = choice("Earlier version", `version-${pool.pool}`);
  card.choice = components;
  card.versions = versions;
  const fill = [
    button("Swap", "swap main", () => swapTo(card)),
    button("Canary", "canary", () => canaryOf(card)),
    button("Shadow", "shadow", () => shadowOf(card)),
  ];
  card.back = button("Roll back", "rollback", () => rollBack(card));
  card.shadow = element("p", { class: "finding" });
  card.canary = element("p", { class: "finding" });
  card.members = makeMembers();
  card.promote = button("Promote", "promote main", () => promote(card));
  card.endShadow = button("End the shadow", "end-shadow", () =>
    order(card, "shadow", "End the shadow", "No candidate is asked any more."),
  );
  const ordersRow = element("div", { class: "orders" }, choose, components, ...fill);
  const backRow = element("div", { class: "orders" }, back, versions, card.back);
  const members = element("div", { class: "scroll" }, card.members);
  const candidateRow = element("div", { class: "orders" }, card.promote, card.endShadow);
  card.append(element("header", {}, card.serving, card.where), card.about, ordersRow, backRow);
  card.append(card.shadow, card.canary, members, candidateRow);
  return card;
}

function aboutText({ pool }) {
  const faults = Object.values(pool.faults).reduce((sum, count) => sum + count, 0);
  const { active } = pool.policies;
  const takenOff = active && active.policy !== pool.policy && !pool.policies.canary?.runs;
  const parts = [active ? `version ${short(active.hash)}` : "no version: the component's file is gone"];
  parts.push(`${pool.windows.toLocaleString("en")} windows`, `${faults} faults`);
  if (takenOff) {
    parts.unshift(`${active.policy} was taken off`);
  }
  return `${parts.join(", ")}${pool.last_fault ? `. Last fault: ${pool.last_fault}` : ""}`;
}

function updatePolicy(card, item) {
  card.now = item;
  const { pool, components } = item;
  const { canary, history } = pool.policies;
  write(card.serving, pool.policy);
  write(card.where, `serves pool ${pool.pool}`);
  write(card.about, aboutText(item));
  options(card.choice, components.map((name) => [name, name]));
  options(card.versions, history.map((version) => [version.hash, `${version.policy} ${short(version.hash)}`]));
  card.back.disabled = history.length === 0 && !canary?.runs;
  write(card.shadow, pool.shadow ? `Shadow ${pool.shadow.policy ?? component(pool.shadow.file)}: ${shadowText(pool.shadow)}` : "");
  mark(card.shadow, "data-level", pool.shadow ? shadowVerdict(pool.shadow) : "idle");
  write(card.canary, canary ? `Canary ${canary.candidate.policy}, ordered by ${canary.by}: ${canaryText(canary)}` : "");
  card.members.hidden = !canary;
  updateMembers(card.members, canary ? canary.report.members : []);
  card.promote.hidden = !pool.shadow && !canary?.runs;
  card.endShadow.hidden = !pool.shadow;
  for (const [node, hidden] of [[card.shadow, !pool.shadow], [card.canary, !canary]]) {
    node.hidden = hidden;
  }
}

function showPolicies(status) {
  const items = status.pools.map((pool, at) => ({ pool, components: status.views[at].components }));
  list(byId("policies"), items, (item) => item.pool.pool, makePolicy, updatePolicy);
  mark(byId("policies"), "data-orders", status.orders);
  byId("reads").hidden = status.orders;
}
