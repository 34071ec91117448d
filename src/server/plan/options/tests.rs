use super::*;

fn variables(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<Vec<_>>().into_iter()
}

#[test]
fn only_a_variable_of_ours_has_to_be_utf_8() {
    use std::os::unix::ffi::OsStringExt;
    let among = |name: &[u8], text: &[u8]| {
        let [name, text] = [name, text].map(|bytes| OsString::from_vec(bytes.to_vec()));
        settings_among([(name, text)].into_iter())
    };
    for (name, text, found) in [
        (&b"OUTCRY_DATA_DIR"[..], &b"/data"[..], Ok(1)),
        (b"OUTCRY_DATA_DIR", b"/data\xff", Err("OUTCRY_DATA_DIR: got /data\u{fffd}; allowed: UTF-8")),
        (b"OUTCRY_\xff", b"x", Err("OUTCRY_\u{fffd}: a variable's name that is not UTF-8")),
        (b"OUTCRY_CONFIG", b"/\xff.toml", Ok(0)),
        (b"PATH", b"/\xff", Ok(0)),
        (b"\xff", b"x", Ok(0)),
    ] {
        assert_eq!(among(name, text).map(|found| found.len()), found.map_err(str::to_owned));
    }
}

#[test]
fn what_init_writes_reads_back_as_the_defaults() {
    let mut options = Options { chain_id: 1, host_prefixes: true, ..Options::default() };
    options.overlay_file(&Options::default().commented()).expect("our own file is good");
    assert_eq!(options, Options::default());
}

#[test]
fn every_limit_is_a_setting() {
    for scope in Scope::ALL {
        assert!(find(&format!("limits.{}", scope.name())).is_ok(), "{}", scope.name());
    }
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let mut options = Options::default();
    options
        .overlay_file("[listen]\nhttp = \"1.1.1.1:1\"\nadmin = \"1.1.1.1:2\"\n[cpu]\nshards = 3\n")
        .expect("good");
    options
        .overlay_environment(variables(&[
            ("OUTCRY_LISTEN_HTTP", "2.2.2.2:2"),
            ("OUTCRY_CPU_SHARDS", "4"),
            ("PATH", "x"),
        ]))
        .expect("good");
    options.overlay_flag("listen.http", "3.3.3.3:3").expect("good");
    assert_eq!(options.listen_http, "3.3.3.3:3");
    assert_eq!(options.listen_admin, "1.1.1.1:2");
    assert_eq!(options.cpu_shards, 4);
}

#[test]
fn a_list_may_be_said_as_the_file_has_it_or_with_commas() {
    let mut options = Options::default();
    for (text, expected) in [
        ("7", vec!["7"]),
        ("2,3-5", vec!["2", "3-5"]),
        ("[\"7\"]", vec!["7"]),
        (" [2, \"3-5\"]", vec!["2", "3-5"]),
        ("[]", vec![]),
    ] {
        options.overlay_flag("cpu.shard_cpus", text).expect(text);
        assert_eq!(options.cpu_shard_cpus, expected, "{text}");
    }
    assert_eq!(
        options.overlay_flag("cpu.shard_cpus", "[7"),
        Err("cpu.shard_cpus: got \"[7\"; allowed: a list, as in 2,3 or [\"2\", \"3\"]".into())
    );
}

#[test]
fn an_unknown_name_is_an_error_that_names_the_nearest() {
    let mut options = Options::default();
    let fault = options.overlay_file("[journal]\ndurabilty = \"durable\"\n").expect_err("a typing error");
    assert_eq!(fault, "journal.durabilty: no such setting; did you mean journal.durability?");
    let fault =
        options.overlay_environment(variables(&[("OUTCRY_LISTEN_HTP", "x")])).expect_err("a typing error");
    assert_eq!(fault, "OUTCRY_LISTEN_HTP: no such setting; did you mean OUTCRY_LISTEN_HTTP?");
    let fault = options.overlay_environment(variables(&[("OUTCRY_CPU_SHARDS", "x")])).expect_err("no number");
    let number = "a whole number, 0 to 18446744073709551615";
    assert_eq!(fault, format!("OUTCRY_CPU_SHARDS: cpu.shards: got \"x\"; allowed: {number}"));
}

#[test]
fn a_file_that_is_no_toml_is_refused_at_its_line_and_column() {
    for (text, place) in [
        ("= 3\n", "line 1, column 1: "),
        ("chain_id = 137 x\n", "line 1, column 12: "),
        ("chain_id = 137\n\n[cpu]\nshards = 1\nshards = 2\n", "line 5, column 1: "),
        ("data_dir = \"ä\" b", "line 1, column 16: "),
    ] {
        let fault = Options::default().overlay_file(text).expect_err("refused");
        assert!(fault.starts_with(place) && place.len() < fault.len(), "{text}: {fault}");
    }
}

#[test]
fn only_a_name_that_is_near_is_suggested() {
    for (name, known) in [
        ("cpu.shard", Some("cpu.shards")),
        ("venu", Some("venue")),
        ("jurnal.durabilty", Some("journal.durability")),
        // Without its table.
        ("log_bytes", Some("journal.log_bytes")),
        ("shards", Some("cpu.shards")),
        ("nope", None),
        ("fee", None),
        ("", None),
        ("something.else", None),
    ] {
        let said = match known {
            Some(known) => format!("{name}: no such setting; did you mean {known}?"),
            None => format!("{name}: no such setting; `outcry config print` shows all there are"),
        };
        assert_eq!(Options::default().overlay_flag(name, "1"), Err(said));
    }
}

#[test]
fn a_variable_without_its_table_is_refused_by_its_full_name() {
    let overlaid = |name: &str| Options::default().overlay_environment(variables(&[(name, "1")]));
    for (name, known) in [
        ("OUTCRY_DURABILITY", "OUTCRY_JOURNAL_DURABILITY"),
        ("OUTCRY_LOG_BYTES", "OUTCRY_JOURNAL_LOG_BYTES"),
        ("OUTCRY_SHARDS", "OUTCRY_CPU_SHARDS"),
    ] {
        assert_eq!(overlaid(name), Err(format!("{name}: no such setting; did you mean {known}?")));
    }
    // `listen.admin` has that last part, and the commands' own variable is called so.
    for name in ["OUTCRY_ADMIN", "OUTCRY_BYTES", "OUTCRY_"] {
        assert_eq!(overlaid(name), Ok(()), "{name}");
    }
}

#[test]
fn a_table_of_no_setting_is_refused_though_it_is_empty() {
    let refused = |text: &str| Options::default().overlay_file(text).expect_err("refused");
    assert_eq!(refused("[jurnal]\n"), "[jurnal]: no such table; did you mean [journal]?");
    assert_eq!(refused("[nope]\n"), "[nope]: no such table; `outcry config print` shows all there are");
    assert!(refused("[chain_id]\nx = 1\n").starts_with("[chain_id]: no such table; "));
    assert!(refused("[cpu.more]\nx = 1\n").starts_with("cpu.more: no such setting; "));
    assert_eq!(Options::default().overlay_file("[cpu]\n"), Ok(()));
}

#[test]
fn a_value_of_the_wrong_form_names_its_key() {
    let mut options = Options::default();
    assert_eq!(
        options.overlay_file("chain_id = \"x\""),
        Err("chain_id: got \"x\"; allowed: a whole number, 0 to 18446744073709551615".into())
    );
    assert_eq!(
        options.overlay_file("chain_id = -1"),
        Err("chain_id: got -1; allowed: a whole number, 0 to 18446744073709551615".into())
    );
    for (text, said) in [
        ("listen = \"x\"", "listen: got \"x\"; allowed: a table, [listen]"),
        (
            "[orders]\nmin_size = 5.5",
            "orders.min_size: got 5.5; allowed: a text, which stands in quotes: \"5.5\"",
        ),
        ("funding = true", "funding: got true; allowed: a text, which stands in quotes: \"true\""),
        ("funding = []", "funding: got []; allowed: a text"),
        (
            "chain_id = 99999999999999999999",
            "line 1, column 12: a number is too large; allowed: up to 9223372036854775807",
        ),
    ] {
        assert_eq!(options.overlay_file(text), Err(said.to_owned()));
    }
    assert_eq!(
        options.overlay_flag("host_prefixes", "maybe"),
        Err("host_prefixes: got \"maybe\"; allowed: true or false".into())
    );
}

#[test]
fn a_refused_value_of_a_variable_is_told_with_the_variable_until_a_flag_takes_its_place() {
    // A variable, then a flag, as `key=value`; what the plan says.
    for (variable, flag, expected) in [
        (
            "OUTCRY_JOURNAL_DURABILITY=",
            "cpu.shards=1",
            "OUTCRY_JOURNAL_DURABILITY: journal.durability: got \"\"; allowed: durable, committed",
        ),
        (
            "OUTCRY_JOURNAL_DURABILITY=x",
            "journal.durability=y",
            "journal.durability: got \"y\"; allowed: durable, committed",
        ),
        (
            "OUTCRY_JOURNAL_DURABILITY=durable",
            "cpu.shards=18446744073709551615",
            "cpu.shards: got 18446744073709551615; allowed: 0 to 64",
        ),
        (
            "OUTCRY_LIMITS_BOOK=",
            "cpu.shards=1",
            "OUTCRY_LIMITS_BOOK: limits.book: got \"\"; allowed: none, a rate",
        ),
    ] {
        let mut options = Options::default();
        let (name, value) = variable.split_once('=').expect("a pair");
        options.overlay_environment(variables(&[(name, value)])).expect("of the right form");
        let (key, value) = flag.split_once('=').expect("a pair");
        options.overlay_flag(key, value).expect("of the right form");
        let fault =
            super::super::plan_on(&options, super::super::Start::default(), &[0, 1]).expect_err("refused");
        assert!(fault.starts_with(expected), "{fault}");
    }
}
