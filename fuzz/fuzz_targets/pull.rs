//! libFuzzer's door to `opdev_fuzz::pull::pull`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| opdev_fuzz::pull::pull(data));
