#![no_main]

use outrigger::provider::ProviderError;
use reqwest::header::HeaderMap;

libfuzzer_sys::fuzz_target!(|data: (u16, &[u8])| {
    let (status, body) = data;
    let error = ProviderError::from_response(status, &HeaderMap::new(), body);
    assert!(!error.message.is_empty() && error.message.len() <= 2048);
});
