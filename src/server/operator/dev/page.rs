//! What `dev` prints when everything is there: addresses, accounts, and what to try.

use std::net::SocketAddr;

use super::seed::{Seeded, first_key};
use crate::json::decimal;
use crate::server::plan::Plan;

/// The page.
pub(super) fn page(http: SocketAddr, admin: SocketAddr, plan: &Plan, seeded: &Seeded) -> String {
    let first = &seeded.markets[0];
    let mut token = Vec::new();
    decimal::push_uint256(&mut token, first.tokens[0].as_bytes());
    let token = String::from_utf8(token).expect("digits are text");
    let mut price = Vec::new();
    decimal::push_price(&mut price, first.middle);
    let price = String::from_utf8(price).expect("digits are text");
    format!(
        "\
outcry dev: an exchange to try things on; loopback only, money of nobody

  exchange   http://{http}
  operator   http://{admin}
  console    http://{admin}/console in a browser
  data       {data}
  markets    {markets}, each quoted when it was new
  accounts   {accounts} test accounts of Anvil with 100,000 USDC each; the first is
             {account}

Look at a book ({question}):

  curl 'http://{http}/book?token_id={token}'

Trade with the unmodified Python client (pip install py-clob-client-v2):

  from py_clob_client_v2 import ClobClient, OrderArgs
  client = ClobClient(\"http://{http}\", {chain}, key=\"{key}\")
  client.set_api_creds(client.create_or_derive_api_key())
  order = client.create_order(OrderArgs(\"{token}\", {price}, 10, \"BUY\"))
  print(client.post_order(order))
  print(client.get_open_orders())

Steer it (another terminal):

  outcry market list --admin http://{admin}
  outcry account credit {account} 500 --admin http://{admin}

Ctrl-C stops it; the next start goes on where this one ended, --fresh begins anew.
",
        data = plan.data_dir.display(),
        markets = seeded.markets.len(),
        accounts = seeded.addresses.len(),
        account = seeded.addresses[0],
        question = first.question,
        chain = plan.chain_id,
        key = first_key(),
    )
}
