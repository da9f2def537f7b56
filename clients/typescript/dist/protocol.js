// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: cfa393db2607d2ee185864ca6a4981be6d57db83644152b3069c25903da91a7c
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. Only `session:ready` of a resumed socket has no `seq`.
/** The version of the contract. */
export const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";
