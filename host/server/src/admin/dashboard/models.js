// Models: the memory of each worker, and the variants in it.

function makeMemory() {
  const item = element("div", { class: "memory" });
  item.name = element("span", { class: "name" });
  item.used = element("span", { class: "number" });
  item.bar = element("meter", { min: 0, max: 1, low: 0.8, high: 0.95, optimum: 0 });
  item.models = element("ul", { class: "tags" });
  item.append(item.name, item.used, item.bar, item.models);
  return item;
}

function makeModel() {
  const item = element("li");
  item.swatch = element("i", { "aria-hidden": "true" });
  item.label = element("span");
  item.append(item.swatch, item.label);
  return item;
}

function updateModel(item, model) {
  mark(item.swatch, "class", `swatch ${colourOf(model.variant)}`);
  write(item.label, `${model.variant} ${bytes(model.bytes)}${model.pinned ? ", pinned" : ""}`);
}

function updateMemory(item, { worker }) {
  const used = worker.memory_bytes - worker.free_bytes;
  write(item.name, worker.name);
  write(item.used, `${bytes(used)} of ${bytes(worker.memory_bytes)}`);
  item.bar.value = worker.memory_bytes > 0 ? used / worker.memory_bytes : 0;
  mark(item.bar, "aria-label", `memory of ${worker.name}`);
  list(item.models, worker.resident, (model) => model.variant, makeModel, updateModel);
}

function showModels(status) {
  const items = status.pools.flatMap((pool) =>
    pool.workers.map((worker) => ({ worker, key: `${pool.pool}/${worker.name}` })),
  );
  list(byId("models"), items, (item) => item.key, makeMemory, updateMemory);
  const failed = status.pools.flatMap((pool) => Object.entries(pool.failed_variants));
  write(byId("failed"), failed.map(([variant, reason]) => `${variant} is not loaded: ${reason}`).join("\n"));
}
