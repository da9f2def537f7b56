#!/bin/bash
# An MCP server that is not to be relied on, for tests.
#
#   rude.sh DIRECTORY TRAIT     flooding (pings without end, and notes how many it got rid of), refusing (the
#                               handshake), older (of a protocol that nobody knows)
directory=$1 trait=$2
say() { printf '%s\n' "$1"; }
flood() {
    local sent=0
    while say "{\"jsonrpc\":\"2.0\",\"id\":$sent,\"method\":\"ping\"}"; do
        sent=$((sent + 1)); echo $sent >"$directory/sent"
    done
}
printf '\033[31mthese are words\033[0m\a\n' >&2
while IFS= read -r line; do
    [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
    case $trait$line in
        refusing*'"method":"initialize"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32000,\"message\":\"the licence has run out\"}}" ;;
        *'"method":"initialize"'*)
            version=2025-06-18; [ "$trait" = older ] && version=1.0
            say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"$version\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"rude\",\"version\":\"1\"}}}" ;;
        *'"method":"tools/list"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[]}}"; [ "$trait" = flooding ] && flood & ;;
        *'"method":"server/discover"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"method not found\"}}" ;;
    esac
done
