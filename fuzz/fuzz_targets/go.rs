//! libFuzzer's door to `opdev_fuzz::entry::go`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| opdev_fuzz::entry::go(data));
