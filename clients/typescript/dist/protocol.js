// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: c2a06d11ee545d0a9816217e5f63fd5197369078be911a3c0a4d306de3770dc6
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. `session:ready` of a resumed socket has no `seq`, nor what a socket with a role
// alone is told.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
