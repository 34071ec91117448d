//! A shell script that mends what the checks found wanting, and one that undoes it.
//!
//! The script changes running settings only, so that a boot undoes it as well; what needs the
//! kernel's command line or a person stands in it as a comment. Before the first change of a file
//! its value is kept in [`KEPT`]; running the script again changes nothing and keeps the first value.

use super::checks::{Finding, Fix, Verdict};

/// Where the script keeps what was there before; lost at the next boot, like the changes themselves.
pub const KEPT: &str = "/run/outcry-tune.kept";

const HEAD: &str = r#"#!/bin/sh
# Made by `outcry tune` for this machine; read it, then run it as root. It lasts until the next boot.
set -eu
kept="${OUTCRY_TUNE_KEPT:-@KEPT@}"

# set_value PATH VALUE: writes it, unless it is there already, and keeps what was there first.
set_value() {
    if [ ! -w "$1" ]; then
        echo "skipped: $1 cannot be written" >&2
        return 0
    fi
    before="$(sed 's/.*\[\(.*\)\].*/\1/' "$1")"
    if [ "$before" = "$2" ]; then
        return 0
    fi
    is_new=""
    if ! grep -qF "set $1 " "$kept" 2>/dev/null; then
        printf 'set %s %s\n' "$1" "$before" >>"$kept"
        is_new=yes
    fi
    if printf '%s\n' "$2" 2>/dev/null >"$1"; then
        echo "$1: $before -> $2"
    else
        # There is nothing to take back.
        if [ -n "$is_new" ]; then
            sed -i '$d' "$kept"
            [ -s "$kept" ] || rm "$kept"
        fi
        echo "refused: $1 stays at $before" >&2
    fi
}
"#;

const STOP: &str = r#"
# stop_service NAME: stops it if it runs, and keeps that it did.
stop_service() {
    if systemctl is-active --quiet "$1" 2>/dev/null; then
        systemctl stop "$1"
        printf 'start %s -\n' "$1" >>"$kept"
        echo "$1: stopped"
    fi
}
"#;

const UNDO: &str = r#"#!/bin/sh
# Takes back what the script of `outcry tune` changed since the last boot; run it as root. What cannot be taken
# back stays kept for the next time.
set -eu
kept="${OUTCRY_TUNE_KEPT:-@KEPT@}"
if [ ! -e "$kept" ]; then
    echo "nothing to take back: no $kept"
    exit 0
fi
left=""
while read -r act name value; do
    case "$act" in
    set)
        if printf '%s\n' "$value" 2>/dev/null >"$name"; then
            echo "$name: $value"
            continue
        fi
        echo "refused: $name, which was $value" >&2
        ;;
    start)
        if systemctl start "$name"; then
            continue
        fi
        echo "refused: $name does not start" >&2
        ;;
    esac
    left="$left$act $name $value
"
done <"$kept"
if [ -n "$left" ]; then
    printf '%s' "$left" >"$kept"
    echo "kept in $kept: what was refused" >&2
    exit 1
fi
rm "$kept"
"#;

/// The script that mends what failed in `findings`.
#[must_use]
pub fn script(findings: &[Finding]) -> String {
    let failed: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Failed && !finding.fixes.is_empty())
        .collect();
    let stops = failed.iter().any(|finding| finding.fixes.iter().any(|fix| matches!(fix, Fix::Stop(_))));
    let mut text = HEAD.replace("@KEPT@", KEPT);
    if stops {
        text.push_str(STOP);
    }
    for finding in &failed {
        let comments = [
            comment(&format!("{}: {}; wanted: {}", finding.id, finding.current, finding.required)),
            comment(finding.why),
        ];
        text.push('\n');
        for line in comments.into_iter().chain(finding.fixes.iter().map(line)) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    if failed.is_empty() {
        text.push_str("\n# The checks found nothing to mend.\n");
    }
    text
}

/// One line of the script.
fn line(fix: &Fix) -> String {
    match fix {
        Fix::Set { path, value } => format!("set_value {} {}", quoted(path), quoted(value)),
        Fix::Stop(name) => format!("stop_service {}", quoted(name)),
        Fix::Boot(word) => comment(&format!("by hand: add {word} to the kernel's command line, and boot")),
        Fix::Advice(advice) => comment(&format!("by hand: {advice}")),
    }
}

/// The script that puts back what [`script`] kept.
#[must_use]
pub fn undo() -> String {
    UNDO.replace("@KEPT@", KEPT)
}

/// `text` as a comment of one line, whatever it holds: what follows a line break would be run, as root.
fn comment(text: &str) -> String {
    format!("# {}", text.replace(char::is_control, " "))
}

/// `word` quoted for the shell: the name of a network card may have any letters.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,/:=".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::checks::Severity;

    #[test]
    fn no_text_leaves_its_comment() {
        let finding = Finding {
            id: "cpu.others",
            required: "below\n5 %".to_owned(),
            current: "x\nid -u>q;#  (7)\r".to_owned(),
            severity: Severity::Warning,
            verdict: Verdict::Failed,
            why: "it takes a loop's CPU",
            amount: None,
            fixes: vec![
                Fix::Advice("stop x\nid -u>q;#  (7)".to_owned()),
                Fix::Boot("isolcpus=1\nid".to_owned()),
                Fix::Stop("irqbalance\nid"),
            ],
        };
        let script = script(&[finding]);
        let (_, made) = script.split_once("\n\n# cpu.others").expect("the finding is told");
        assert_eq!(
            made,
            ": x id -u>q;#  (7) ; wanted: below 5 %\n# it takes a loop's CPU\n# by hand: stop x id -u>q;#  (7)\n# \
             by hand: add isolcpus=1 id to the kernel's command line, and boot\nstop_service 'irqbalance\nid'\n"
        );
    }

    #[test]
    fn a_word_cannot_leave_its_quotes() {
        assert_eq!(quoted("/proc/irq/7/smp_affinity_list"), "/proc/irq/7/smp_affinity_list");
        assert_eq!(quoted("a;b"), "'a;b'");
        assert_eq!(quoted("a'b"), "'a'\\''b'");
        assert_eq!(quoted(""), "''");
    }
}
