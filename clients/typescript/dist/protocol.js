// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: c05c9f46dabce80e1d8ad7d92460cf4cc8cbeaadc5fd1e1d34d4e119767477a7
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. `session:ready` of a resumed socket has no `seq`, nor what a socket with a role
// alone is told.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
