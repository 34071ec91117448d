// The session of trade.mjs as a web page's script; page.py has it bundled and calls `trade` with its scene.

import assert from "assert";
import * as clob from "@polymarket/clob-client-v2";
import * as viem from "viem";
import * as accounts from "viem/accounts";
import { trade } from "./trade.mjs";

window.trade = (scene) => trade({ assert: assert.strict, clob, viem, accounts }, scene);
