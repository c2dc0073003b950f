// npm run build -- OUT.wasm [WIT-FOLDER] [wasi]: what `switchyard policy build` calls.

import { writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const [out, wit = "wit/0.1", world] = process.argv.slice(2);
// A policy has no clock, no randomness of its own and no network, so it needs none of these; with
// `wasi` they stay, empty, and `console.log` goes to the server's log.
const features = ["random", "stdio", "clocks", "http", "fetch-event"];
const { component } = await componentize({
  sourcePath: "app.js",
  witPath: wit,
  worldName: "policy",
  disableFeatures: world === "wasi" ? ["http", "fetch-event"] : features,
});
await writeFile(out, component);
