//! The streams' document against the code that it describes. Whatever a test is told on a stream is held against it too
//! (`common/stream.rs`).

#![allow(clippy::unwrap_used, reason = "a test that cannot read the document has to stop")]

mod common;

use common::schema::Document;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_reference_leads_somewhere_and_every_message_is_said_by_somebody() {
    let document = Document::of_streams();
    let referred = document.references();
    let parts = |pointer: &str| {
        let names = document.0.pointer(pointer).unwrap().as_object().unwrap().keys();
        names.map(|name| format!("#{pointer}/{name}")).collect::<Vec<_>>()
    };
    let channels = ["market", "user"].map(|channel| parts(&format!("/channels/{channel}/messages")));
    // Shapes that this document has alone; what it shares, the other one uses.
    let shared = Document::of_library();
    let own = parts("/components/schemas").into_iter().filter(|part| shared.0.pointer(&part[1..]).is_none());
    for part in channels.into_iter().flatten().chain(parts("/components/messages")).chain(own) {
        assert!(referred.contains(&part), "{part} is referred to by nothing");
    }
    let said: BTreeSet<_> =
        ["send", "receive"].iter().flat_map(|action| document.messages(action).into_keys()).collect();
    assert_eq!(said.len(), parts("/components/messages").len(), "{said:?}");
}

#[test]
fn what_both_documents_have_is_the_same() {
    let (streams, routes) = (Document::of_streams(), Document::of_library());
    let of = |document: &Document| document.0["components"]["schemas"].as_object().unwrap().clone();
    let routes = of(&routes);
    let both = of(&streams).into_iter().filter(|(name, _)| routes.contains_key(name));
    let both: Vec<_> = both.inspect(|(name, schema)| assert_eq!(routes[name], *schema, "{name}")).collect();
    assert!(!both.is_empty());
}

#[test]
fn every_example_fits_its_message() {
    let document = Document::of_streams();
    for (name, message) in document.0["components"]["messages"].as_object().unwrap() {
        let examples = message["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            let complaints = document.complaints(&message["payload"], &example["payload"]);
            assert!(complaints.is_empty(), "{name}: {complaints:#?}");
            let told =
                document.messages("send").contains_key(name.as_str()) && example["payload"].is_object();
            assert!(!told || document.complaints_of_told(&example["payload"]).is_empty(), "{name}");
        }
    }
}

/// The texts behind `key("name").text("…")` in the sources that write messages.
fn written(sources: &str, name: &str) -> BTreeSet<String> {
    let before = format!("key(\"{name}\").text(\"");
    let texts = sources.split(&before).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    texts.collect()
}

#[test]
fn every_kind_of_message_that_the_server_writes_is_there_and_no_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reader");
    let files = std::fs::read_dir(folder.join("feed")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.is_file()).chain([folder.join("feed.rs")]);
    let sources: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let document = Document::of_streams();
    let messages = document.messages("send");
    let described = |kind: &str| -> BTreeSet<String> {
        let kinds = messages.values().filter_map(|schema| schema["properties"][kind]["enum"].as_array());
        kinds.flatten().map(|kind| Value::as_str(kind).unwrap().to_owned()).collect()
    };
    assert_eq!(written(&sources, "event_type"), described("event_type"));
    assert_eq!(written(&sources, "channel"), described("channel"));
    for kind in written(&sources, "type") {
        assert!(described("type").contains(&kind), "{kind}");
    }
}
