//! libFuzzer's door to `opdev_fuzz::entry::yaml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| opdev_fuzz::entry::yaml(data));
