// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: 35ea322cc6057d81f9f630d0bc5e8aafd2befbed4cf8f11a89ae3637b2b36f0d
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. Only `session:ready` of a resumed socket has no `seq`.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
