//! Texts that are a part of the program and hardly ever asked for: the contract's schemas, the console page. `build.rs`
//! deflates them, and they are inflated whenever they are asked for.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// A text, deflated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed(&'static [u8]);

impl Packed {
    /// Returns the text.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        // It is what this program was built with, and a test inflates each of them.
        if let Err(error) = DeflateDecoder::new(self.0).read_to_string(&mut text) {
            tracing::error!(%error, "a text of this program cannot be read");
        }
        text
    }
}

macro_rules! packed {
    ($name:literal) => {
        Packed(include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $name,
            ".deflated"
        )))
    };
}

/// The JSON schema of every frame, as `protocol::schema` makes it; a test there compares both.
pub(crate) const SCHEMA: Packed = packed!("protocol.schema.json");

/// The same as AsyncAPI, as `protocol::asyncapi` makes it.
pub(crate) const ASYNCAPI: Packed = packed!("asyncapi.json");

/// The contract as TypeScript, as the client in this repository has it.
pub(crate) const TYPESCRIPT: Packed = packed!("protocol.ts");

/// The console page: markup, style, script, and whose parts it has.
pub(crate) const PAGE: Packed = packed!("index.html");
pub(crate) const STYLE: Packed = packed!("style.css");
pub(crate) const SCRIPT: Packed = packed!("app.js");
pub(crate) const THIRD_PARTY: Packed = packed!("THIRD-PARTY.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_back_as_it_was() {
        for (packed, path) in [
            (SCHEMA, "fixtures/schema/protocol.schema.json"),
            (ASYNCAPI, "docs/asyncapi.json"),
            (TYPESCRIPT, "clients/typescript/src/protocol.ts"),
            (PAGE, "clients/console/index.html"),
            (STYLE, "clients/console/dist/style.css"),
            (SCRIPT, "clients/console/dist/app.js"),
            (THIRD_PARTY, "clients/console/dist/THIRD-PARTY.txt"),
        ] {
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            assert!(
                packed.text() == std::fs::read_to_string(file).unwrap(),
                "{path}"
            );
        }
    }
}
