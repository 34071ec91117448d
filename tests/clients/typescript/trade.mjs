// A trading session of the unmodified TypeScript client `@polymarket/clob-client-v2`, wherever it runs: in Node
// (session.mjs) and in a browser's page (page.mjs).
//
// The client has no streams of its own: both channels are followed with the platform's WebSocket, with the
// credentials that the client got.

const END = "LTE=";
const PAGE = 100;
const ORDERS_IN_PAGES = 105;
const BATCH_MAX = 15;
const PATIENCE_MS = 10_000;

let scene, assert, yes, no;
let AssetType, Chain, ClobClient, OrderType, Side, createWalletClient, http, privateKeyToAccount;

/** A client that signs with its own address and throws whatever the exchange refuses. */
async function trader({ key }) {
    const signer = createWalletClient({ account: privateKeyToAccount(key), transport: http(scene.url) });
    const common = { host: scene.url, chain: Chain.AMOY, signer, throwOnError: true };
    const creds = await new ClobClient(common).createOrDeriveApiKey();
    const client = new ClobClient({ ...common, creds });
    return { client, creds, address: signer.account.address };
}

/** One channel, and what came on it since it was asked last. */
class Stream {
    constructor(path, hello) {
        this.messages = [];
        this.waiting = null;
        this.socket = new WebSocket(scene.url.replace("http", "ws") + path);
        this.socket.onopen = () => {
            this.socket.send(JSON.stringify(hello));
            this.socket.send("PING");
        };
        this.socket.onmessage = ({ data }) => {
            // What is sent behind the first message is answered behind it: from here on all is heard.
            const heard = data === "PONG" ? { event_type: data } : JSON.parse(data);
            this.messages.push(...(Array.isArray(heard) ? heard : [heard]));
            this.waiting?.();
        };
    }

    /** The first message that has these fields; those before it are passed over. */
    async until(fields) {
        const deadline = Date.now() + PATIENCE_MS;
        const fits = (message) => Object.entries(fields).every(([name, value]) => message[name] === value);
        for (;;) {
            const at = this.messages.findIndex(fits);
            if (at >= 0) {
                return this.messages.splice(0, at + 1).at(-1);
            }
            assert(Date.now() < deadline, `no ${JSON.stringify(fields)} in ${JSON.stringify(this.messages)}`);
            await new Promise((wake) => {
                this.waiting = wake;
                setTimeout(wake, 100);
            });
        }
    }

    close() {
        this.socket.close();
    }
}

/** What a trader has, in millionths: collateral and shares of both tokens. */
async function holdings({ client }) {
    const of = async (params) => Number((await client.getBalanceAllowance(params)).balance);
    const shares = (token_id) => of({ asset_type: AssetType.CONDITIONAL, token_id });
    return [await of({ asset_type: AssetType.COLLATERAL }), await shares(yes), await shares(no)];
}

const moved = (before, after) => after.map((now, index) => now - before[index]);

/** A taker's fee in millionths. */
const feeOf = (shares, price) => Math.round(Number(scene.rate) * shares * price * (1 - price) * 1e5) * 10;

const limit = (price, size, tokenID = yes, side = Side.BUY) => ({ tokenID, price, size, side });

async function readsAreOpen({ client }) {
    assert.equal(await client.getOk(), "OK");
    assert(Math.abs((await client.getServerTime()) - Date.now() / 1000) < 60);
    assert.equal(await client.getVersion(), 2);
    const markets = [];
    for (let cursor = "MA=="; cursor !== END; ) {
        const page = await client.getMarkets(cursor);
        assert.equal(page.count, page.data.length);
        markets.push(...page.data);
        cursor = page.next_cursor;
    }
    const market = markets.find((row) => row.condition_id === scene.condition);
    assert.deepEqual(market.tokens.map((token) => token.token_id), scene.tokens);
    assert.deepEqual(await client.getMarket(scene.condition), market);
    assert.equal(await client.getTickSize(yes), "0.01");
    assert.equal(await client.getNegRisk(yes), false);
    const book = await client.getOrderBook(yes);
    assert.deepEqual([book.market, book.asset_id, book.bids, book.asks], [scene.condition, yes, [], []]);
}

async function keysAreTheSameAgain({ client, creds }) {
    assert.match(creds.key, /^[0-9a-f-]{36}$/);
    assert.deepEqual(await client.deriveApiKey(), creds);
    assert.deepEqual(await client.getApiKeys(), { apiKeys: [creds.key] });
    assert.equal((await client.getClosedOnlyMode()).closed_only, false);
    const { apiKey } = await client.createReadonlyApiKey();
    assert.deepEqual(await client.getReadonlyApiKeys(), { readonlyApiKeys: [apiKey] });
    assert.deepEqual(await client.deleteReadonlyApiKey(apiKey), { deleted: true });
}

async function anOrderRests(first, streams) {
    const answer = await first.client.createAndPostOrder(limit(0.4, 10), {}, OrderType.GTC);
    assert.deepEqual([answer.success, answer.status, answer.errorMsg], [true, "live", ""]);
    const order = await first.client.getOrder(answer.orderID);
    const fields = [order.id, order.status, order.side, order.price, order.original_size, order.size_matched];
    assert.deepEqual(fields, [answer.orderID, "LIVE", "BUY", "0.4", "10", "0"]);
    assert.deepEqual([order.market, order.asset_id, order.owner], [scene.condition, yes, first.creds.key]);
    const open = await first.client.getOpenOrders({ market: scene.condition });
    assert.deepEqual(open.map((row) => row.id), [answer.orderID]);
    const book = await first.client.getOrderBook(yes);
    assert.deepEqual([book.bids, book.asks], [[{ price: "0.4", size: "10" }], []]);
    assert.equal(await first.client.getOrderBookHash({ ...book }), book.hash);
    const mirrored = await first.client.getOrderBook(no);
    assert.deepEqual(mirrored.asks, [{ price: "0.6", size: "10" }]);

    const placed = await streams.user.until({ event_type: "order", type: "PLACEMENT" });
    assert.deepEqual([placed.id, placed.price, placed.original_size], [answer.orderID, "0.4", "10"]);
    const change = await streams.market.until({ event_type: "price_change" });
    const level = change.price_changes.find((entry) => entry.asset_id === yes);
    assert.deepEqual([level.price, level.size, level.side, level.best_bid], ["0.4", "10", "BUY", "0.4"]);
    return answer.orderID;
}

async function aMarketOrderFills(first, second, streams, resting) {
    const before = [await holdings(first), await holdings(second)];
    const wish = { tokenID: no, amount: 6, side: Side.BUY };
    const answer = await second.client.createAndPostMarketOrder(wish, {}, OrderType.FOK);
    assert.deepEqual([answer.success, answer.status], [true, "matched"]);
    assert.deepEqual([answer.makingAmount, answer.takingAmount], ["6", "10"]);
    assert.match(answer.transactionsHashes[0], /^0x[0-9a-f]{64}$/);
    assert.deepEqual(moved(before[0], await holdings(first)), [-4_000_000, 10_000_000, 0]);
    assert.deepEqual(moved(before[1], await holdings(second)), [-6_000_000 - feeOf(10, 0.6), 0, 10_000_000]);

    const update = await streams.user.until({ event_type: "order", id: resting, type: "UPDATE" });
    assert.deepEqual([update.size_matched, update.status], ["10", "MATCHED"]);
    const trade = await streams.user.until({ event_type: "trade", id: answer.tradeIDs[0] });
    assert.deepEqual([trade.taker_order_id, trade.trader_side, trade.size], [answer.orderID, "MAKER", "10"]);
    assert.deepEqual(trade.maker_orders.map((leg) => [leg.order_id, leg.matched_amount, leg.price]), [
        [resting, "10", "0.4"],
    ]);
    const last = await streams.market.until({ event_type: "last_trade_price" });
    assert.deepEqual([last.asset_id, last.price, last.size, last.side], [no, "0.6", "10", "BUY"]);
    assert.equal((await first.client.getOrder(resting)).status, "MATCHED");
    return answer.tradeIDs[0];
}

async function fillAndKillTakesWhatThereIs(first, second) {
    await first.client.createAndPostOrder(limit(0.45, 5), {}, OrderType.GTC);
    const wish = { tokenID: no, amount: 4.4, side: Side.BUY, orderType: OrderType.FAK };
    const answer = await second.client.createAndPostMarketOrder(wish, {}, OrderType.FAK);
    assert.deepEqual([answer.status, answer.makingAmount, answer.takingAmount], ["matched", "2.75", "5"]);
    assert.deepEqual(await second.client.getOpenOrders(), []);
    return answer.tradeIDs[0];
}

async function refusalsAreTold({ client }) {
    const orders = [[limit(0.5, 900_000), /not enough balance/], [limit(0.5, 1), /lower than the minimum/]];
    for (const [order, words] of orders) {
        await assert.rejects(client.createAndPostOrder(order, {}, OrderType.GTC), words);
    }
}

async function tradesAreListed(first, second, ids) {
    for (const [who, role] of [[first, "MAKER"], [second, "TAKER"]]) {
        const trades = await who.client.getTrades({ market: scene.condition });
        assert.deepEqual(trades.map((trade) => trade.id), ids.toReversed());
        assert.deepEqual(trades.map((trade) => [trade.trader_side, trade.size, trade.price]), [
            [role, "5", "0.55"],
            [role, "10", "0.6"],
        ]);
        const [only] = await who.client.getTrades({ id: ids[0] });
        assert.match(only.transaction_hash, /^0x[0-9a-f]{64}$/);
        assert.equal(only.maker_orders[0].maker_address.toLowerCase(), first.address.toLowerCase());
    }
    const live = await first.client.getMarketTradesEvents(scene.condition);
    assert.deepEqual(live.map((event) => [event.side, event.size, event.price]), [
        ["BUY", "5", "0.55"],
        ["BUY", "10", "0.6"],
    ]);
}

async function ordersAreCancelled({ client }, streams) {
    const ids = [];
    for (const price of [0.11, 0.12, 0.13]) {
        ids.push((await client.createAndPostOrder(limit(price, 10), {}, OrderType.GTC)).orderID);
    }
    assert.deepEqual(await client.cancelOrder({ orderID: ids[0] }), { canceled: [ids[0]], not_canceled: {} });
    const cancelled = await streams.user.until({ event_type: "order", type: "CANCELLATION" });
    assert.deepEqual([cancelled.id, cancelled.price, cancelled.size_matched], [ids[0], "0.11", "0"]);
    const again = await client.cancelOrder({ orderID: ids[0] });
    assert.match(again.not_canceled[ids[0]], /already canceled or matched/);
    assert.deepEqual((await client.cancelAll()).canceled.toSorted(), ids.slice(1).toSorted());
    assert.deepEqual(await client.getOpenOrders(), []);
}

async function ordersComeInPages({ client }) {
    const ids = [];
    for (let start = 0; start < ORDERS_IN_PAGES; start += BATCH_MAX) {
        const batch = [];
        for (let index = start; index < Math.min(start + BATCH_MAX, ORDERS_IN_PAGES); index += 1) {
            const order = await client.createOrder(limit((1 + (index % 9)) / 100, 5));
            batch.push({ order, orderType: OrderType.GTC });
        }
        ids.push(...(await client.postOrders(batch)).map((answer) => answer.orderID));
    }
    const page = await client.getOpenOrders({}, true);
    assert.equal(page.length, PAGE);
    const all = await client.getOpenOrders();
    assert.deepEqual(all.map((order) => order.id), ids.toReversed());
    assert.deepEqual((await client.cancelAll()).canceled.toSorted(), ids.toSorted());
}

async function whatIsNotRunIsEmpty({ client }) {
    assert.deepEqual(await client.getCurrentRewards(), []);
    assert.deepEqual(await client.getRawRewardsForMarket(scene.condition), []);
    assert.deepEqual(await client.getEarningsForUserForDay("2026-11-20"), []);
    assert.deepEqual(await client.getTotalEarningsForUserForDay("2026-11-20"), []);
    assert.deepEqual(await client.getUserEarningsAndMarketsConfig("2026-11-20"), []);
    assert.deepEqual(await client.getRewardPercentages(), {});
    assert.deepEqual(await client.getPreMigrationOrders(), []);
    assert.deepEqual(await client.getNotifications(), []);
    assert.deepEqual(await client.getBuilderApiKeys(), []);
    assert.deepEqual((await client.getBuilderTrades({ builder_code: scene.condition })).trades, []);
    await assert.rejects(client.createBuilderApiKey(), /builder keys are not supported/);
}

async function step(name, act) {
    const started = performance.now();
    const result = await act();
    console.log(`ok: ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
    return result;
}

/**
 * Trades through the whole session and throws whatever is not as it should be. `modules` are the client, both parts of
 * viem, and `assert` in its strict form; `told` is what session.py tells.
 */
export async function trade(modules, told) {
    ({ assert } = modules);
    ({ AssetType, Chain, ClobClient, OrderType, Side } = modules.clob);
    ({ createWalletClient, http } = modules.viem);
    ({ privateKeyToAccount } = modules.accounts);
    scene = told;
    [yes, no] = scene.tokens;
    const first = await trader(scene.traders[0]);
    const second = await trader(scene.traders[1]);
    const { key: apiKey, secret, passphrase } = first.creds;
    const streams = {
        market: new Stream("/ws/market", { type: "market", assets_ids: scene.tokens }),
        user: new Stream("/ws/user", { type: "user", markets: [], auth: { apiKey, secret, passphrase } }),
    };
    await streams.market.until({ event_type: "book", asset_id: yes });
    await streams.user.until({ event_type: "PONG" });
    await step("reads are open", () => readsAreOpen(first));
    await step("keys are the same again", () => keysAreTheSameAgain(first));
    const resting = await step("an order rests", () => anOrderRests(first, streams));
    const trades = [
        await step("a market order fills", () => aMarketOrderFills(first, second, streams, resting)),
        await step("fill and kill takes what there is", () => fillAndKillTakesWhatThereIs(first, second)),
    ];
    await step("refusals are told", () => refusalsAreTold(first));
    await step("trades are listed", () => tradesAreListed(first, second, trades));
    await step("orders are cancelled", () => ordersAreCancelled(first, streams));
    await step("orders come in pages", () => ordersComeInPages(first));
    await step("what is not run is empty", () => whatIsNotRunIsEmpty(first));
    streams.market.close();
    streams.user.close();
}
