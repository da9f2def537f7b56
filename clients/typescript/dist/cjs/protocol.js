"use strict";
// Made of fixtures/schema/protocol.schema.json by `npm run build`; do not edit.
// SHA-256 of it: d956dd1dc774a833a3f4435e1b5894dcd1402bd988f34dafd02dc2c292b1149b
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
