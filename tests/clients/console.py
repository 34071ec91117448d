"""The operator's console in a real browser: what it shows is what was just traded.

    console.py BINARY

Pictures of it go to `target/console`, in light, in dark and as wide as a phone.
"""

import json
import os
import sys

from browser import Browser
from exchange import KEYS, Exchange, fetch
from polymarket import Trader
from story import market

QUESTION = "Does the console <b>show</b> this & that?"

# The loop of invented samples.
LOOP = "outcry-reader"

# The widths of two browsers: on a desk and on a phone.
DESK, PHONE = 1280, 390

# The settings of serve, which make it as small as dev.
SMALL = ["sizes.books_bytes=16777216", "sizes.digests=10000", "sizes.resting_orders=10000", "sizes.wallets=10000"]


def place(trader, token, side, price, size):
    answer = trader.post(trader.limit(token, side, price, size, 0), "GTC", False)
    assert answer["success"], answer


def count(text):
    return int(text.replace(",", "")) if text else 0


def levels(side):
    """The expression for the levels of one side, best first: prices and shares as they stand there."""
    rows = f'[...document.querySelectorAll("#book tr[data-side={side}]")]'
    best_first = "" if side == "bid" else ".reverse()"
    cell = "row.querySelector('td span').textContent"
    return f"JSON.stringify({rows}{best_first}.map((row) => [row.querySelector('th').textContent, {cell}]))"


def shows(page, side, expected):
    page.until(levels(side), json.dumps(expected, separators=(",", ":")))


def look(exchange, page, folder):
    """Trades, and finds it on the page."""
    condition, tokens = market(exchange, QUESTION)
    first, second = (Trader(name, exchange.url, key) for name, key in zip(("first", "second"), KEYS))
    page.open(exchange.admin_url + "/")
    page.until("!document.querySelector('#inside').hidden")
    # A book is empty until the first order, then shows it.
    page.type("#market-id", condition)
    page.until(f"document.querySelector('#book-words').textContent.startsWith({json.dumps(QUESTION)})")
    shows(page, "bid", [])
    place(first, tokens[0], "BUY", 0.40, 25)
    shows(page, "bid", [["0.40", "25"]])
    for price, size in ((0.39, 1250), (0.37, 600), (0.38, 410.5), (0.40, 75)):
        place(first, tokens[0], "BUY", price, size)
    for price, size in ((0.55, 700), (0.56, 1500), (0.58, 90)):
        place(second, tokens[1], "BUY", price, size)
    shows(page, "bid", [["0.40", "100"], ["0.39", "1,250"], ["0.38", "410.5"], ["0.37", "600"]])
    shows(page, "ask", [["0.42", "90"], ["0.44", "1,500"], ["0.45", "700"]])
    assert "spread 0.02" in page.text("#book-words"), page.text("#book-words")
    # A trade removes the best ask; the other outcome's book is the same book seen from its side.
    place(first, tokens[0], "BUY", 0.42, 90)
    shows(page, "ask", [["0.44", "1,500"], ["0.45", "700"]])
    assert "last price 0.42" in page.text("#book-words"), page.text("#book-words")
    page.evaluate("document.querySelectorAll('#outcomes input')[1].click()")
    shows(page, "bid", [["0.56", "1,500"], ["0.55", "700"]])
    page.evaluate("document.querySelectorAll('#outcomes input')[0].click()")
    shows(page, "ask", [["0.44", "1,500"], ["0.45", "700"]])
    print("ok: a book shows what was just placed and traded")
    numbers(exchange, page, orders=9)
    words(exchange, page)
    room(page)
    tables(page)
    lines(page)
    restarts(page)
    picks(page)
    machine(exchange, page)
    pictures(page, folder)


def numbers(exchange, page, orders):
    """What the tables say is what the listener says."""
    total = "document.querySelector('#stages tr[data-stage=total]').cells[4].textContent"
    page.until(f"{orders} <= Number({total}.replaceAll(',', ''))")
    for stage in ("recv", "parse", "auth", "sign", "match", "journal", "total", "turn", "write"):
        cells = page.evaluate(
            f"[...document.querySelector('#stages tr[data-stage={stage}]').cells].slice(4).map((cell) => cell.textContent)"
        )
        assert count(cells[0]) > 0 and all(cell.endswith("s") for cell in cells[1:]), f"{stage}: {cells}"
    shares = page.evaluate("[...document.querySelectorAll('#stages .value')].map((cell) => parseFloat(cell.textContent))")
    # Each is rounded by itself, by at most half of one.
    assert len(shares) == 7 and abs(sum(shares) - 100) < 3.5, shares
    parts = json.loads(fetch(exchange.admin_url + "/debug/latency"))
    loops = [part["loop"] for part in parts if "turn" in part["stages"]]
    shown = page.evaluate("[...document.querySelectorAll('#loops tr[data-loop] th')].map((cell) => cell.textContent)")
    assert shown == loops, (shown, loops)
    for name in ("claimed", "durable", "applied"):
        assert count(page.text(f"#journal-{name} td")) > 0, name
    assert page.text("#journal-fill .value").endswith("%")
    facts = [page.text(f"#{name}") for name in ("state", "mode", "durability")]
    assert facts == ["ready", "open", "durable"], facts
    assert len(page.evaluate("[...document.querySelectorAll('#limits tr')].map((row) => row.textContent)")) == 3
    # The last seconds have less than the whole time.
    page.evaluate("document.querySelector('#stages-window').value = '10'")
    page.evaluate("document.querySelector('#stages-window').dispatchEvent(new Event('change'))")
    page.until(f"{total} === '0'")
    page.evaluate("document.querySelector('#stages-window').value = '0'")
    page.evaluate("document.querySelector('#stages-window').dispatchEvent(new Event('change'))")
    print("ok: stages, loops and journal are told")


def words(exchange, page):
    """The line above all says what is wrong as long as it is."""
    says = "document.querySelector('#words').textContent"
    page.until("document.querySelector('#slow').textContent.includes('Most of it went to ')")
    exchange.operator("mode", "post-only")
    page.until(f"{says}.includes('The exchange is post-only')")
    assert page.evaluate("document.querySelector('#verdict').dataset.level") != "good"
    exchange.operator("mode", "open")
    page.until(f"!{says}.includes('post-only')")
    print("ok: what is wrong is said in words")


def with_samples(page, samples, expression):
    """The value of an expression in the page while it has these samples instead of its own, each with its age in ms."""
    return page.evaluate(f"""(() => {{
        const own = state.samples;
        performance.now = () => 1e6;
        state.samples = {json.dumps(samples)}.map(({{ age, text, ...rest }}) =>
            ({{ at: performance.now() - age, metrics: parseMetrics(text ?? ""), latency: [{{ loop: "{LOOP}" }}], ...rest }}));
        try {{ return {expression}; }} finally {{ state.samples = own; delete performance.now; }}
    }})()""")


def room(page):
    """Its rate of requests says what a loop could do only if requests are what its time goes to."""
    labels = f'loop="{LOOP}"'
    unknown = "6.7 % of the time. Less than half of that went to the stages of trading requests, so how many"
    for requests, turn, sign, expected in (
        (60, 4, 3, "6.7 % of the time for 1.0 requests a second; of the same kind it could do about 15,"),
        (60, 4, 1, unknown),
        (60, 4, 0, unknown),
        (60, 1, 1, ""),
        (0, 4, 3, ""),
    ):
        lines = (
            f"outcry_requests_total{{{labels}}} {requests}",
            f'outcry_duration_seconds_sum{{{labels},stage="turn"}} {turn}',
            f'outcry_duration_seconds_sum{{{labels},stage="sign"}} {sign}',
        )
        said = with_samples(page, [{"age": 60_000, "text": "\n"}, {"age": 0, "text": "\n".join(lines)}], "room()")
        assert said == expected or expected and said.startswith(f"Busiest is {LOOP}: {expected}"), said
    print("ok: how much more a loop could do is said only where its requests tell")


def tables(page):
    """A table is told of from nine of ten parts on, each shard's alone; digests make room by themselves."""
    for name, labels, taken, level in (
        ("books_bytes", f'{{loop="{LOOP}"}}', 899, None),
        ("books_bytes", f'{{loop="{LOOP}"}}', 900, "warn"),
        ("resting_orders", f'{{loop="{LOOP}"}}', 1000, "bad"),
        ("wallets", "", 950, "warn"),
        ("digests", f'{{loop="{LOOP}"}}', 1000, None),
    ):
        text = f'outcry_table_max{{table="{name}"}} 1000\noutcry_{name}{labels} {taken}'
        said = with_samples(page, [{"age": 0, "text": text}], "complaints()")
        told = [row for row in said if row["text"].startswith(f"sizes.{name}: ")]
        assert [row["level"] for row in told] == ([level] if level else []), (name, taken, said)
    print("ok: tables that are nearly full are told of")


def lines(page):
    """A line's points stand where they belong in time, and where no sample came there is no line."""
    for ages, expected in (
        ((), []),
        ((0,), [[299.5, 300]]),
        ((2_000, 1_000, 0), [[297.5, 298, 299, 300]]),
        # Stopped for 45 s.
        ((47_000, 46_000, 1_000, 0), [[252.5, 253, 254], [298.5, 299, 300]]),
        ((299_000, 0), [[0.5, 1], [299.5, 300]]),
    ):
        drawn = """(() => {
            showLine("rate", (sample) => sample.rate, perSecond);
            return document.querySelector("#rate-line path").getAttribute("d");
        })()"""
        path = with_samples(page, [{"age": age, "rate": 1} for age in ages], drawn)
        strokes = [[float(point.split()[0]) for point in stroke.split("L")] for stroke in path.split("M")[1:]]
        assert strokes == expected, path
    print("ok: lines are drawn by time, with a gap where no answer came")


def restarts(page):
    """What is shown as written each second was written: neither a restart nor the end of a recovery is a growth."""
    log = "outcry_claimed_position"
    for before, after, expected in (
        (f"outcry_answers_total 500\n{log} 1000", f"outcry_answers_total 501\n{log} 3048", "2.0 KiB/s"),
        (f"outcry_answers_total 500\n{log} 1000", f"outcry_answers_total 3\n{log} 33554432", "0 B/s"),
        ("outcry_answers_total 3", f"outcry_answers_total 4\n{log} 33554432", "0 B/s"),
    ):
        drawn = f"""(() => {{
            remember(parseMetrics({json.dumps(after)}), []);
            showJournal();
            return document.querySelector("#journal-claimed").cells[2].textContent;
        }})()"""
        shown = with_samples(page, [{"age": 1_000, "text": before, "latency": []}], drawn)
        assert shown == expected, (before, after, shown)
    print("ok: a restart and a recovery are not shown as bytes that were written")


def picks(page):
    """A market that is picked while another one's book is on its way is the one that is shown."""
    held = "window.held.map(({ path }) => path).join()"
    # Asks for books wait until they are let go.
    page.evaluate("""void (() => {
        const own = window.fetch;
        window.held = [];
        window.fetch = async (path, options) => {
            if (!path.startsWith("/books/")) return own(path, options);
            await new Promise((letGo) => window.held.push({ path, letGo }));
            return own(path, { ...options, signal: undefined });
        };
        window.holdNoMore = () => {
            window.fetch = own;
            for (const { letGo } of window.held) letGo();
        };
    })()""")
    first = page.evaluate("state.market")
    page.until(held, f"/books/{first}")
    second, question = page.evaluate(f"""(() => {{
        const list = document.querySelector("#market");
        const other = [...list.options].find(({{ value }}) => value && value !== "{first}");
        list.focus();
        list.value = other.value;
        list.dispatchEvent(new Event("change", {{ bubbles: true }}));
        return [other.value, other.textContent.replace(/ \\([^(]*\\)$/, "")];
    }})()""")
    words = "document.querySelector('#book-words').textContent"
    rows = "document.querySelectorAll('#book tbody tr').length"
    assert (page.evaluate(words), page.evaluate(rows)) == ("Asking the exchange…", 0)
    page.evaluate("void window.held.shift().letGo()")
    page.until(held, f"/books/{second}")
    assert (page.evaluate(words), page.evaluate(rows)) == ("Asking the exchange…", 0)
    page.evaluate("window.holdNoMore()")
    page.until(f"{words}.startsWith({json.dumps(question)})")
    page.evaluate("document.activeElement.blur()")
    page.until("document.querySelector('#market').value", second)
    page.type("#market-id", first)
    page.until(f"{words}.startsWith({json.dumps(QUESTION)})")
    print("ok: a market that is picked while another one's book comes is the one that is shown")


def machine(exchange, page):
    """What the page says of the machine is what the listener told it, and what limits it is said above all."""
    page.until("0 < document.querySelectorAll('#threads tbody th').length")
    # All from one look, because some of it is about the last second.
    seen = page.evaluate("""({
        told: state.machine,
        above: document.querySelector("#limit").textContent,
        threads: [...document.querySelectorAll("#threads tbody th")].map((cell) => cell.textContent),
        failed: [...document.querySelectorAll("#failed tbody th")].map((cell) => cell.textContent),
        costs: [...document.querySelectorAll("#failed tbody tr")].map((row) => row.cells[1].textContent),
        limits: [...document.querySelectorAll("#machine-limits li")].map((item) => item.textContent),
        none: document.querySelector("#machine-none").textContent,
    })""")
    told, listener = seen["told"], json.loads(fetch(exchange.admin_url + "/machine"))
    failed = [row for row in told["conditions"] if row["passed"] is False]
    assert seen["threads"] == [row["thread"] for row in told["threads"]], seen
    assert seen["failed"] == [row["condition"] for row in failed], seen
    assert seen["costs"] == [row["costs"] for row in failed], seen
    first = told["limits"][0]
    assert first["text"] in seen["above"] and first["change"] in seen["above"], seen
    # An empty list is shown as a sentence.
    shown = [seen["none"]] if first["kind"] == "none" else seen["limits"]
    assert len(shown) == len(told["limits"]), seen
    assert all(limit["text"] in item for limit, item in zip(told["limits"], shown)), seen
    assert listener["threads"] == told["threads"], listener
    assert [row["condition"] for row in listener["conditions"]] == [row["condition"] for row in told["conditions"]]
    facts = page.text("#machine-facts")
    assert all(name in facts for name in ("processor", "frequency governor", "placement")), facts
    print("ok: the machine, its threads and what limits it are told")


def pictures(page, folder):
    for name, width, scheme in (("light", DESK, "light"), ("dark", DESK, "dark"), ("phone", PHONE, "light")):
        page.dress(width, scheme)
        page.until("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        page.picture(os.path.join(folder, f"{name}.png"))
        beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{name}: the page is {beyond} px wider than its window"
    page.dress(DESK, "light")
    print("ok: it fits a desk and a phone; pictures are in target/console")


def strangers(exchange, browser):
    """Another page on this machine, even one of the exchange's own, reaches nothing of the operator's."""
    page = browser.page()
    page.open(exchange.url + "/ready")
    page.until("location.pathname === '/ready' && document.readyState === 'complete'")
    assert page.evaluate(f"fetch('{exchange.admin_url}/limits').then(() => 'read', () => 'refused')") == "refused"
    page.evaluate(f"void (location.href = '{exchange.admin_url}/console')")
    page.until("location.pathname === '/console' && document.body.textContent.includes('\"code\":\"origin\"')")
    print("ok: a link on another page does not open the console")


def with_token(binary, browser, folder):
    exchange = Exchange(binary, *SMALL, command=["serve"])
    try:
        page = browser.page()
        page.dress(DESK, "light")
        page.open(exchange.admin_url + "/console")
        page.until("!document.querySelector('#door').hidden")
        assert page.evaluate("document.querySelector('#inside').hidden")
        page.picture(os.path.join(folder, "door.png"))
        page.type("#token", "not the token\u2019s")
        page.until("document.querySelector('#door-words').textContent.includes('not this exchange')")
        token = open(os.path.join(exchange.data_dir, "admin-token")).read().strip()
        page.type("#token", token)
        page.until("!document.querySelector('#inside').hidden && document.querySelector('#door').hidden")
        page.until("document.querySelector('#book-words').textContent", "There is no market yet.")
        page.ask("Page.reload")
        page.until("document.querySelector('#inside')?.hidden === false")
        refused = [text for text in page.complaints if "401" not in text]
        assert not refused and page.complaints, page.complaints
        # Another tab does not have the token.
        other = browser.page()
        other.open(exchange.admin_url + "/console")
        other.until("!document.querySelector('#door').hidden")
        exchange.stop()
        page.until("document.querySelector('#words').textContent.includes('does not answer')")
    finally:
        exchange.kill()
    print("ok: serve asks for its token once, and the page says when the exchange is gone")


def main(binary):
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(binary))), "console")
    browser = Browser()
    exchange = None
    try:
        exchange = Exchange(binary)
        page = browser.page()
        page.dress(DESK, "light")
        look(exchange, page, folder)
        assert not page.complaints, page.complaints
        strangers(exchange, browser)
        exchange.stop()
        with_token(binary, browser, folder)
    finally:
        browser.close()
        if exchange:
            exchange.kill()
    print("done: console")


if __name__ == "__main__":
    main(sys.argv[1])
