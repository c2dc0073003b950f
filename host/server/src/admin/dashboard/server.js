// The server, as the page asks it.

const ASK_EVERY_MS = 1000;
const PATIENCE_MS = 6000;
const TOKEN = "switchyard-token";

// The token leaves with the tab.
const operator = {
  get token() {
    return sessionStorage.getItem(TOKEN) ?? "";
  },
  set token(token) {
    if (token) {
      sessionStorage.setItem(TOKEN, token);
    } else {
      sessionStorage.removeItem(TOKEN);
    }
    showOperator();
  },
};

function showOperator() {
  const known = operator.token !== "";
  byId("token").hidden = known;
  write(byId("operator").querySelector("label"), known ? "Token in this tab" : "Operator's token");
  write(byId("keep"), known ? "Forget" : "Use");
}

byId("operator").addEventListener("submit", (event) => {
  event.preventDefault();
  operator.token = operator.token ? "" : byId("token").value.trim();
  byId("token").value = "";
  byId("keep").focus();
});

// An answer that the server gave, whatever it says.
async function ask(path, body, patience = PATIENCE_MS) {
  const headers = {};
  if (operator.token) {
    headers.Authorization = `Bearer ${operator.token}`;
  }
  const request = { headers, cache: "no-store", signal: AbortSignal.timeout(patience) };
  if (body !== undefined) {
    request.method = "POST";
    request.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, request);
  const text = await answer.text();
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Metrics are no JSON, and neither are some refusals.
  }
  return { status: answer.status, json, text };
}

// The server's own words.
const refusal = (answer) => answer.json?.error ?? `${answer.status} ${answer.text}`.trim();

// The calls that found no room in a pool's inbox: the scheduler has not seen them.
async function turnedAway() {
  const { text } = await ask("/metrics");
  const found = text.matchAll(/^switchyard_inbox_full_total\{pool="(.*)"\} (\d+)$/gm);
  return new Map([...found].map(([, pool, count]) => [pool, Number(count)]));
}
