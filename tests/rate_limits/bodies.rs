//! What long bodies cost.

use super::Site;

#[test]
fn each_further_32_kib_of_a_body_are_owed_by_the_address_whatever_becomes_of_the_request() {
    let mut site = Site::start(&["limits.mode=enforce", "limits.cancel=9/9s"]);
    for (bytes, remaining) in [((32 << 10) - 1, 8), (32 << 10, 6), (64 << 10, 3)] {
        let answer = site.ask("DELETE", "/orders", &" ".repeat(bytes));
        assert_eq!(answer.status, 400, "{bytes}");
        let after = site.ask("DELETE", "/cancel-all", "");
        assert_eq!(after.header("RateLimit-Remaining"), Some(&*(remaining - 1).to_string()), "{bytes}");
        site.exchange.advance(1_000);
    }
}
