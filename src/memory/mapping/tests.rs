//! What a mapping shares, and where it lies.

use super::*;
use std::io::{Read, Seek, Write};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn anonymous_words_are_zero_and_keep_what_is_stored() {
    let mapping = Mapping::anonymous(4_096 + 8).expect("there is memory");
    assert_eq!(mapping.words().len(), 513);
    assert!(mapping.words().iter().all(|word| word.load(Relaxed) == 0));
    mapping.words()[512].store(7, Relaxed);
    assert_eq!(mapping.words()[512].load(Relaxed), 7);
    assert!(mapping.start.cast::<u8>().align_offset(HUGE_BYTES) == 0, "a huge page can begin there");
}

#[test]
fn a_file_is_shared_both_ways_and_gathering_keeps_its_content() {
    let bytes = 2 * HUGE_BYTES + 4_096;
    let length = bytes as u64;
    let mut file = tempfile::tempfile_in("/dev/shm").expect("a file in memory");
    file.set_len(length).expect("room");
    let (first, second) = (Mapping::of_file(&file, length), Mapping::read_only(&file, length));
    let (mut first, second) = (first.expect("a mapping"), second.expect("another"));
    let marks = [(0, 1), (HUGE_BYTES / 8, 2), (bytes / 8 - 1, 3)];
    for (at, mark) in marks {
        first.words()[at].store(mark, Relaxed);
    }
    first.gather();
    let gathered = first.huge_bytes();
    assert!([0, HUGE_BYTES, 2 * HUGE_BYTES].contains(&gathered), "{gathered}: whole pages, and not the rest");
    for (at, mark) in marks {
        assert_eq!(second.words()[at].load(Relaxed), mark);
    }
    assert_eq!(first.words().iter().map(|word| word.load(Relaxed)).sum::<u64>(), 6, "the rest is zero");
    file.rewind().expect("its start");
    file.write_all(&9_u64.to_le_bytes()).expect("room");
    assert_eq!(first.words()[0].load(Relaxed), 9);
    drop((first, second));
    let mut content = Vec::new();
    file.rewind().expect("its start");
    file.read_to_end(&mut content).expect("it is there");
    assert!(content.len() == bytes && content[bytes - 8] == 3, "the file outlives its mappings");
}

#[test]
fn what_cannot_be_mapped_is_an_error() {
    let (read, _write) = std::io::pipe().expect("a pipe");
    assert!(Mapping::of_file(&read, 4_096).is_err());
}
