//! The daemon as a black box over a real socket.
