//! The interface as a document: OpenAPI 3.1, served at `GET /openapi.json`.
//!
//! The document is written by hand, in files that each hold one JSON object: `document.json` the
//! top-level members, `components.json` the credentials, headers, parameters and refusals, `paths/`
//! the operations and `schemas/` the shapes, one file per subject. [`TEXT`] concatenates the
//! members of these objects; nothing is parsed.
//!
//! `tests/openapi.rs` checks it against the table of routes in both directions, and
//! `tests/contract.rs` against what the running binary answers.

use std::sync::LazyLock;

/// The top-level members.
const DOCUMENT: &str = include_str!("openapi/document.json");

/// Everything that operations refer to, except the schemas.
const COMPONENTS: &str = include_str!("openapi/components.json");

/// The operations by path.
const PATHS: [&str; 13] = [
    include_str!("openapi/paths/trading.json"),
    include_str!("openapi/paths/safety.json"),
    include_str!("openapi/paths/books.json"),
    include_str!("openapi/paths/terms.json"),
    include_str!("openapi/paths/account.json"),
    include_str!("openapi/paths/keys.json"),
    include_str!("openapi/paths/catalog.json"),
    include_str!("openapi/paths/keyset.json"),
    include_str!("openapi/paths/wallets.json"),
    include_str!("openapi/paths/activity.json"),
    include_str!("openapi/paths/data.json"),
    include_str!("openapi/paths/programmes.json"),
    include_str!("openapi/paths/service.json"),
];

/// The shapes that the streams' document has too.
pub(super) const WORDS: &str = include_str!("openapi/schemas/words.json");

/// The shapes by name.
const SCHEMAS: [&str; 10] = [
    WORDS,
    include_str!("openapi/schemas/common.json"),
    include_str!("openapi/schemas/trading.json"),
    include_str!("openapi/schemas/safety.json"),
    include_str!("openapi/schemas/markets.json"),
    include_str!("openapi/schemas/account.json"),
    include_str!("openapi/schemas/catalog.json"),
    include_str!("openapi/schemas/wallets.json"),
    include_str!("openapi/schemas/activity.json"),
    include_str!("openapi/schemas/data.json"),
];

/// The whole document, assembled at first use.
pub static TEXT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{{{},\"paths\":{{{}}},\"components\":{{{},\"schemas\":{{{}}}}}}}\n",
        members(&[DOCUMENT]),
        members(&PATHS),
        members(&[COMPONENTS]),
        members(&SCHEMAS)
    )
});

/// The members of all these objects, without the braces around them.
pub(super) fn members(objects: &[&'static str]) -> String {
    let inside = |object: &&'static str| object.trim().strip_prefix('{')?.strip_suffix('}').map(str::trim);
    let members: Option<Vec<_>> = objects.iter().map(inside).collect();
    members.expect("each file is one object").join(",")
}
