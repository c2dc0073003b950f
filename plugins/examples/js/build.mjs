// npm run build -- OUT.wasm [WIT-FOLDER] [wasi]: called by `switchyard policy build`.

import { writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const [out, wit = "wit/0.2", world] = process.argv.slice(2);
// A policy needs no clock, randomness or network. With `wasi` these imports stay, as stubs, and
// `console.log` goes to the server's log.
const features = ["random", "stdio", "clocks", "http", "fetch-event"];
const { component } = await componentize({
  sourcePath: "app.js",
  witPath: wit,
  worldName: "policy",
  disableFeatures: world === "wasi" ? ["http", "fetch-event"] : features,
});
await writeFile(out, component);
