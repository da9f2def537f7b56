"use strict";
// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: c2a06d11ee545d0a9816217e5f63fd5197369078be911a3c0a4d306de3770dc6
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
