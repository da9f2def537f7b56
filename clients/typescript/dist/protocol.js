// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: 15919f83a6a026397c3fd9ffa8251efb06ef6ba8abeaf4a8a325ad36266e5bed
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. Only `session:ready` of a resumed socket has no `seq`.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
