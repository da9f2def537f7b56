// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: 7f487af45123ae0e841370a0ed5cf628029782683e2709bf1afeeeb37c6c50b0
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. Only `session:ready` of a resumed socket has no `seq`.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
