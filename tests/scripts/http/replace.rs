//! Replaces over HTTP: signed orders, and the ids of the orders that they replace, in one request.

use super::{Done, Run};
use crate::common::trader::hex_text;
use crate::language::Command;
use outcry::domain::{OrderId, Reject};
use outcry::shard::naive::NaiveReplaced;
use outcry::shard::{IfGone, PlaceOrder, Refusal, Replace};
use serde_json::{Value, json};

impl Run {
    pub fn replace(&mut self, command: &Command) -> Done {
        let Command::Replace { who, leaving, anyway, coming } = command else {
            unreachable!("only replaces come here");
        };
        let wallet = self.wallet(who);
        let leaving: Vec<OrderId> = leaving.iter().map(|label| self.id_of(label)).collect();
        let drafted: Vec<_> = coming.iter().map(|line| self.drafted(line)).collect();
        let orders: Vec<PlaceOrder> = drafted.iter().map(|drafted| drafted.place).collect();
        let bodies: Vec<Value> =
            drafted.iter().map(|drafted| serde_json::from_str(&drafted.signed.body).unwrap()).collect();
        let cancel: Vec<String> = leaving.iter().map(|id| hex_text(&id.0)).collect();
        let mut body = json!({ "cancel": cancel, "place": bodies });
        if *anyway {
            body["ifGone"] = "place".into();
        }
        let trader = self.people.trader(who);
        let answer = trader.ask(&mut self.site.public, "POST", "/replace", &body.to_string()).unwrap();
        let request = Replace {
            principal: self.names.principals[wallet.index()],
            leaving: &leaving,
            coming: &orders,
            if_gone: if *anyway { IfGone::Place } else { IfGone::Refuse },
        };
        let twin = self.twin.replace(&request);
        let said = answer.json();
        let http = match answer.status {
            200 => Ok(self.done(&said, answer.header("Idempotent-Replayed") == Some("true"), &twin)),
            _ => Err(self.refusal(&said)),
        };
        let mut gone = Vec::new();
        if let Ok(NaiveReplaced { left, came, .. }) = &twin {
            gone.clone_from(left);
            for (id, heir) in came {
                match heir.and_then(|former| self.placed.iter().position(|placed| *placed == former)) {
                    Some(place) => self.placed[place] = *id,
                    None => self.placed.push(*id),
                }
            }
        }
        Done::of(self.names.replace_text(&http), self.names.replace_text(&twin)).removed(&gone, "replaced")
    }

    /// What an answer says. It says that an order has a replaced order's place, but not which.
    fn done(&self, said: &Value, replayed: bool, twin: &Result<NaiveReplaced, Refusal>) -> NaiveReplaced {
        let ids = |list: &Value| -> Vec<OrderId> {
            let ids = list.as_array().unwrap().iter();
            ids.map(|id| OrderId(outcry::domain::text::parse_hex(id.as_str().unwrap().as_bytes()).unwrap()))
                .collect()
        };
        assert_eq!(said["success"], true, "{said} at {}", self.at);
        if replayed {
            return NaiveReplaced { replayed, ..NaiveReplaced::default() };
        }
        let kept = ids(&said["kept_priority"]);
        let heirs = twin.as_ref().map(|twin| twin.came.clone()).unwrap_or_default();
        let came = said["orders"].as_array().unwrap().iter().map(|order| {
            assert_eq!((&order["status"], &order["makingAmount"]), (&"live".into(), &"".into()), "{said}");
            let [id] = ids(&json!([order["orderID"]]))[..] else { unreachable!("one id gives one") };
            let heir = heirs.iter().find(|(other, _)| *other == id).and_then(|(_, heir)| *heir);
            (id, if kept.contains(&id) { Some(heir.unwrap_or(OrderId::ZERO)) } else { None })
        });
        NaiveReplaced { replayed, came: came.collect(), left: ids(&said["canceled"]) }
    }

    fn refusal(&self, said: &Value) -> Refusal {
        let code = said["code"].as_str().unwrap_or_default();
        let found = Reject::ALL.iter().find(|reject| reject.wire().code == code);
        assert_eq!(said["success"], false, "{said} at {}", self.at);
        (*found.unwrap_or_else(|| panic!("{said} names no refusal, at {}", self.at))).into()
    }
}
