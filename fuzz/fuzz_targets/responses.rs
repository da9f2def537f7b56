#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: (u8, &[u8])| {
    let (cut, body) = data;
    invariants::check(
        outrigger::provider::replay::Wire::Responses,
        body,
        usize::from(cut),
    );
});
