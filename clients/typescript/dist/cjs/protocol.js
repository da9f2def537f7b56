"use strict";
// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: f277a5f0c8bfe9debebb5b459dbd6ee53202385bdd96db9c2dc1234689a0a20e
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. `session:ready` of a resumed socket has no `seq`, nor what a socket with a role
// alone is told.
Object.defineProperty(exports, "__esModule", { value: true });
exports.SUBPROTOCOL = exports.PROTOCOL_VERSION = void 0;
/** The version of the contract. */
exports.PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
exports.SUBPROTOCOL = "outrigger.v1";
