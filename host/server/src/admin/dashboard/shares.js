// Shares: outcomes in figures, and violations in words.

// Violations by cause. A request whose client went away violates nothing.
const CAUSES = [
  ["late answers", ["late", "short_circuit_late"]],
  ["shed past capacity", ["overloaded"]],
  ["above the app's share", ["above_share"]],
  ["queue full", ["queue_full"]],
  ["no worker", ["no_worker"]],
  ["dropped past the deadline", ["dropped_pending", "dropped_queued", "dropped_between_stages"]],
  ["refused by the policy", ["rejected_by_policy"]],
  ["deadline too short", ["deadline_too_short"]],
  ["draining", ["draining"]],
  ["failed", ["failed"]],
];
const GOOD = ["in_time", "short_circuit"];
const VIOLATED = 0.02;
const OVERLOADED = 0.1;

const sumOf = (outcomes, labels) => labels.reduce((sum, label) => sum + (outcomes[label] ?? 0), 0);

// The figures of some outcomes over some microseconds.
function figuresOf(outcomes, coversUs) {
  const seconds = Math.max(coversUs, 1) / 1e6;
  const good = sumOf(outcomes, GOOD);
  const causes = CAUSES.map(([name, labels]) => [name, sumOf(outcomes, labels)]);
  const violated = causes.reduce((sum, [, count]) => sum + count, 0);
  const ended = good + violated;
  const found = causes.filter(([, count]) => count > 0).map(([name, count]) => [name, count / ended]);
  return {
    ended,
    offered: ended / seconds,
    goodput: good / seconds,
    violations: ended > 0 ? violated / ended : null,
    causes: found.sort(([, one], [, other]) => other - one),
  };
}

// Colours follow the figures that are shown, so that they agree.
function level(violations) {
  if (violations === null) {
    return "idle";
  }
  if (violations < VIOLATED) {
    return "good";
  }
  return violations < OVERLOADED ? "warn" : "bad";
}

// The apps of all pools. `turnedAway`: by pool, calls a second that found its inbox full.
function appsOf(status) {
  return status.pools.flatMap((pool, at) => {
    const { apps, covers_us: coversUs } = status.views[at].recent;
    const items = apps.map((app) => {
      const figures = figuresOf(app.outcomes, coversUs);
      return { ...figures, app, pool, key: `${pool.pool}/${app.app}` };
    });
    const all = items.reduce((sum, item) => sum + item.ended, 0);
    return items.map((item) => ({ ...item, part: all > 0 ? item.ended / all : 0 }));
  });
}

const named = (policy) => (policy === "host" ? "the host (no policy)" : `policy ${policy}`);

// Violations by the policy that decided, largest first.
function deciders({ app, ended }) {
  const by = app.policies.map((policy) => [named(policy.policy), (policy.ended - policy.in_time) / ended]);
  return by.filter(([, share]) => share > 0).sort(([, one], [, other]) => other - one);
}

const listed = (shares) => shares.map(([name, share]) => `${name} ${percent(share)}`).join(", ");

// How many requests an app lost, why, and by whose decision.
function attribution(item) {
  const { app, causes, ended } = item;
  if (ended === 0) {
    return "No request has ended.";
  }
  if (causes.length === 0) {
    return `Every request in time. Decided by ${app.policies.map((policy) => named(policy.policy)).join(", ")}.`;
  }
  return `Lost: ${listed(causes)}. Decided by ${listed(deciders(item))}.`;
}

// The apps with a tenth of violations or more: a headline each, and its reasons.
function alarmOf(apps) {
  const hit = apps.filter((item) => item.violations >= OVERLOADED && item.ended >= 5);
  hit.sort((one, other) => other.offered - one.offered);
  return hit.map((item) => {
    const headline = `App ${item.app.app}: ${percent(item.violations)} violations`;
    const reasons = [
      `It gets ${rate(item.offered)} requests/s, ${percent(item.part)} of pool ${item.pool.pool}.`,
      `Cause: ${listed(item.causes)}.`,
      `Decided by ${listed(deciders(item))}; the pool's policy is ${item.pool.policy}.`,
    ];
    return { key: item.key, headline, reasons: reasons.join(" ") };
  });
}
