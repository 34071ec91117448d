// A trading session of the unmodified TypeScript client `@polymarket/clob-client-v2` in Node.
//
//     node session.mjs MODULES SCENE
//
// MODULES is the folder in which package.json is installed, outside of the sources; SCENE is what
// session.py tells.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { trade } from "./trade.mjs";

const [folder, scene] = process.argv.slice(2);
const require = createRequire(join(resolve(folder), "package.json"));
const modules = {
    assert,
    clob: require("@polymarket/clob-client-v2"),
    viem: require("viem"),
    accounts: require("viem/accounts"),
};
await trade(modules, JSON.parse(scene));
