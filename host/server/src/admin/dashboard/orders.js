// Orders: one dialog that says what will happen, asks for the token once, and shows the server's answer.

// A policy may compile for long; the server answers after 12 s at the latest.
const ORDER_PATIENCE_MS = 20000;

// The order that the dialog shows.
let ordered = null;

// Opens the dialog. `order`: title, text, pool, verb and body.
function propose(order) {
  ordered = order;
  write(byId("order-title"), order.title);
  write(byId("order-text"), order.text);
  write(byId("order-answer"), "");
  byId("order-ask").hidden = operator.token !== "";
  byId("order-send").disabled = false;
  byId("order").showModal();
  const first = operator.token === "" ? "order-token" : "order-send";
  byId(first).focus();
}

async function send() {
  const typed = byId("order-token").value.trim();
  if (typed) {
    operator.token = typed;
    byId("order-token").value = "";
  }
  if (operator.token === "") {
    write(byId("order-answer"), "The order needs an operator's token: a line `NAME TOKEN` of server.operators.");
    byId("order-token").focus();
    return;
  }
  const { pool, verb, body } = ordered;
  byId("order-send").disabled = true;
  write(byId("order-answer"), "Sent …");
  try {
    const path = `/admin/v1/pools/${encodeURIComponent(pool)}/policy/${verb}`;
    answered(await ask(path, body, ORDER_PATIENCE_MS));
  } catch (error) {
    write(byId("order-answer"), `No answer: ${error.message}. The order may have been carried out: see the events.`);
  }
  byId("order-send").disabled = false;
}

function answered(answer) {
  if (answer.status === 401) {
    operator.token = "";
    byId("order-ask").hidden = false;
    byId("order-token").focus();
  }
  if (answer.status === 200) {
    byId("order").close();
    happened("good", `${ordered.title}: done`);
    refresh();
    return;
  }
  const loading = "The policy is compiling. The events show its result.";
  write(byId("order-answer"), answer.status === 202 ? loading : refusal(answer));
}

byId("order").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
byId("order-cancel").addEventListener("click", () => byId("order").close());
