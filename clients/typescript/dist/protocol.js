// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: 9d83394b56dd7f34f6dddbf7f1af702abfd7869d5b5283451dc441fee23d2da8
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. Only `session:ready` of a resumed socket has no `seq`.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
