//! What was traded in markets, for callers that name each with both of its tokens: as `conditionId` and `tokenIds`, or
//! in snake case, as Kuest's site does.

use super::Reader;
use super::ask::{Asked, Refused, WORD_RULE, condition_id, invalid, spelt, token_id, too_long};
use crate::domain::{ConditionId, TimeMs, TokenId};
use crate::json::Writer;
use serde_json::Value;

/// Markets in one request.
const CONDITIONS_MAX: usize = 100;

const CONDITIONS_RULE: &str = "1 to 100 objects with conditionId and tokenIds";
const TOKENS_RULE: &str = "the market's two token ids in decimal, as strings";

/// One market that is asked about.
struct Ask {
    condition: ConditionId,
    tokens: [TokenId; 2],
}

impl Reader {
    /// POST /data/volumes: one entry for each market, in the order of the request, with a status of
    /// its own. Only what was traded here counts, not what was traded before an import.
    pub(super) fn volumes(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let body = asked.object(&["conditions", "include_24h"])?;
        let with_day = match body.get("include_24h") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(wanted)) => *wanted,
            Some(other) => return Err(invalid().about("include_24h", &other.to_string(), "true or false")),
        };
        let asks = asks(&body)?;
        json.open_array();
        for ask in &asks {
            json.open_object().key("condition_id").condition(&ask.condition);
            self.write_volume(json, ask, with_day.then_some(asked.now()));
            json.close_object();
        }
        json.close_array();
        Ok(())
    }

    fn write_volume(&self, json: &mut Writer<'_>, ask: &Ask, day_until: Option<TimeMs>) {
        let refused = |json: &mut Writer<'_>, status, error| {
            json.key("status").number(status).key("error").text(error);
        };
        let Some(market) = self.index.condition(&ask.condition) else {
            return refused(json, 404, "market not found");
        };
        let [first, second] = &self.market(market).tokens;
        if ask.tokens != [*first, *second] && ask.tokens != [*second, *first] {
            return refused(json, 400, "tokenIds are not the tokens of this market");
        }
        let listed = self.catalog().market(market.0);
        let traded = listed.tape().last().map_or(0, |(_, traded)| *traded);
        json.key("status").number(200).key("volume").millionths_text(traded);
        if let Some(now) = day_until {
            json.key("volume_24h").millionths_text(listed.volume_of_day(now));
        }
    }
}

fn asks(body: &Value) -> Result<Vec<Ask>, Refused> {
    let conditions = match body.get("conditions") {
        Some(Value::Array(conditions)) => conditions,
        other => {
            let got = other.map(Value::to_string).unwrap_or_default();
            return Err(invalid().about("conditions", &got, CONDITIONS_RULE));
        }
    };
    if conditions.is_empty() {
        return Err(invalid().about("conditions", "[]", CONDITIONS_RULE));
    }
    if conditions.len() > CONDITIONS_MAX {
        return Err(too_long().about("conditions", &conditions.len().to_string(), CONDITIONS_RULE));
    }
    conditions.iter().map(ask).collect()
}

fn ask(item: &Value) -> Result<Ask, Refused> {
    if !item.is_object() {
        return Err(invalid().about("conditions", &item.to_string(), CONDITIONS_RULE));
    }
    let refused = |name, value: &Value, rule: &'static str| {
        let got = if value.is_null() { String::new() } else { value.to_string() };
        invalid().about(name, &got, rule)
    };
    let (name, value) =
        spelt(item, &["conditionId", "condition_id"])?.unwrap_or(("conditionId", &Value::Null));
    let condition = value.as_str().and_then(|text| condition_id(text.as_bytes()));
    let condition = condition.ok_or_else(|| refused(name, value, WORD_RULE))?;
    let token = |value: &Value| token_id(value.as_str()?.as_bytes());
    let (name, value) = spelt(item, &["tokenIds", "token_ids"])?.unwrap_or(("tokenIds", &Value::Null));
    let tokens = match value.as_array().map(Vec::as_slice) {
        Some([first, second]) => token(first).zip(token(second)).map(<[TokenId; 2]>::from),
        _ => None,
    };
    let tokens = tokens.ok_or_else(|| refused(name, value, TOKENS_RULE))?;
    Ok(Ask { condition, tokens })
}
