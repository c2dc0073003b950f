// The page: it asks every second, shows the answer, and says so when there is none.

const ALARM_KEPT_MS = 5000;

let asking = false;
let lastAnswer = null;
let lastAlarm = { items: [], at: 0 };
let lastTurnedAway = new Map();

// Calls a second that found no room, by pool, since the last look.
async function inboxes() {
  const now = await turnedAway();
  const more = [...now].map(([pool, count]) => [pool, count - (lastTurnedAway.get(pool) ?? count)]);
  lastTurnedAway = now;
  return more.filter(([, count]) => count > 0);
}

function makeAlarm() {
  const item = element("p");
  item.headline = element("strong");
  item.reasons = element("span");
  item.append(item.headline, item.reasons);
  return item;
}

function updateAlarm(node, item) {
  write(node.headline, item.headline);
  write(node.reasons, item.reasons);
}

function showAlarm(apps, refused) {
  const items = alarmOf(apps);
  for (const [pool, count] of refused) {
    const reasons = `Its inbox was full ${count.toLocaleString("en")} times in the last second.`;
    items.push({ key: pool, headline: `Pool ${pool}: calls turned away`, reasons });
  }
  const [before, now] = [lastAlarm.items.length, Date.now()];
  if (items.length > 0 && before === 0) {
    happened("bad", items.map((item) => `${item.headline}. ${item.reasons}`).join(" "));
  }
  // An alarm stays for some seconds: long enough to be read.
  if (items.length > 0 || (before > 0 && now - lastAlarm.at > ALARM_KEPT_MS)) {
    if (items.length === 0) {
      happened("good", "no app has 10 % violations any more");
    }
    lastAlarm = { items, at: now };
  }
  list(byId("alarm"), lastAlarm.items, (item) => item.key, makeAlarm, updateAlarm);
  byId("alarm").hidden = lastAlarm.items.length === 0;
}

function showState(status) {
  mark(byId("state"), "data-level", status.ready ? "good" : "warn");
  write(byId("state"), status.ready ? "ready" : `not ready: ${status.waits_for}`);
  write(byId("about"), `version ${status.version}, up ${span(status.now_us / 1e6)}`);
  document.body.classList.remove("stale");
}

function showSilence(error) {
  const since = lastAnswer ? ` for ${span((Date.now() - lastAnswer) / 1e3)}` : "";
  mark(byId("state"), "data-level", "bad");
  write(byId("state"), `no answer${since}: ${error.message}`);
  document.body.classList.add("stale");
}

async function refresh() {
  if (asking) {
    return;
  }
  asking = true;
  try {
    const answer = await ask("/admin/v1/dashboard");
    if (answer.status !== 200) {
      throw new Error(refusal(answer));
    }
    const refused = await inboxes();
    const apps = appsOf(answer.json);
    lastAnswer = Date.now();
    showState(answer.json);
    showApps(answer.json, apps);
    showAlarm(apps, refused);
    showWorkers(answer.json);
    showPolicies(answer.json);
    showModels(answer.json);
    showEvents(answer.json);
  } catch (error) {
    showSilence(error);
  } finally {
    asking = false;
  }
}

showOperator();
refresh();
setInterval(refresh, ASK_EVERY_MS);
