// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: 1bd5d4f592e28ce0022400d7774cf81af81f6767008556504167633202fc7b5f
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. `session:ready` of a resumed socket has no `seq`, nor what a socket with a role
// alone is told.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
