//! Every route with a limit of its own is held to that.

use super::Site;

/// A limit, and a request that is counted in it; TOKEN stands for a token.
const ROUTES: [(&str, &str, &str, &str); 13] = [
    ("root", "GET", "/", ""),
    ("book", "GET", "/book?token_id=TOKEN", ""),
    ("books", "POST", "/books", r#"[{"token_id":"TOKEN"}]"#),
    ("price", "GET", "/price?token_id=TOKEN&side=BUY", ""),
    ("prices", "POST", "/prices", r#"[{"token_id":"TOKEN","side":"BUY"}]"#),
    ("midpoint", "GET", "/midpoint?token_id=TOKEN", ""),
    ("prices_history", "GET", "/prices-history?market=TOKEN&interval=1h", ""),
    ("batch_prices_history", "POST", "/batch-prices-history", r#"{"markets":["TOKEN"],"interval":"1h"}"#),
    ("events", "GET", "/events", ""),
    ("markets", "GET", "/markets?limit=1", ""),
    ("tags", "GET", "/tags", ""),
    ("search", "GET", "/public-search?q=rain", ""),
    ("wallet", "GET", "/positions?user=WALLET", ""),
];

#[test]
fn each_route_is_held_to_its_own_limit() {
    let settings = ROUTES.map(|(scope, ..)| format!("limits.{scope}=1/10m"));
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(["limits.mode=enforce"]).collect();
    let mut site = Site::start(&settings);
    for (scope, method, path, body) in ROUTES {
        let [path, body] = [path, body].map(|text| {
            text.replace("TOKEN", &site.token).replace("WALLET", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
        });
        let answers = [(); 2].map(|()| site.connection.request(method, &path, "", body.as_bytes()).unwrap());
        assert_ne!(answers[0].status, 429, "{scope}: {}", answers[0].text());
        assert_eq!((answers[1].status, answers[1].header("RateLimit-Limit")), (429, Some("1")), "{scope}");
    }
    let mut site = Site::start(&["limits.mode=enforce", "limits.data_trades=1/10m", "limits.account=1/10m"]);
    for path in ["/data/trades", "/account"] {
        let statuses = [(); 2].map(|()| site.ask("GET", path, "").status);
        assert_eq!(statuses, [200, 429], "{path}");
    }
}
