#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outcry_fuzz::bodies::frames(bytes));
