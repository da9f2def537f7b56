// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: 34011ce6da31145d85f045bc65d593e429653e1147c42f74fa6ceb35c7b64741
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. `session:ready` of a resumed socket has no `seq`, nor what a socket with a role
// alone is told.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
