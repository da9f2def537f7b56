"use strict";
// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: f8a15fe523f2442d42f77dd94a12186b9148fc8e28967348b5b86bb2f65e318a
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
