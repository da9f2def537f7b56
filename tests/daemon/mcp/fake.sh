#!/bin/bash
# A tiny MCP server of the older era, or of the newer one, for tests. Everything it needs is in bash itself.
#
#   fake.sh DIRECTORY [TRAIT…]     it notes what it gets in files of the directory
#
# Traits: stubborn (ignores the end of its input and SIGTERM), mute (answers nothing), junk (writes
# logs to stdout), broken (ends with words on stderr), big (pages of tools with odd names), sick (one tool
# nested too deep; answers too large, or of unknown sorts), newer (speaks the 2026-07-28 protocol: no handshake,
# and a call ends where it needs the user), tabs (answers an echo with a table and a progress bar).
directory=$1; shift
traits=" $* "
is() { [[ $traits == *" $1 "* ]]; }
say() { printf '%s\n' "$1"; }
result() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
text() { result "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
schema='{"type":"object","properties":{"text":{"type":"string"}}}'
# A server that has a secret puts it into what it says of its tools.
tool() { printf '{"name":"%s","description":"%s","inputSchema":%s}' "$1" "$2${API_TOKEN:+ with $API_TOKEN}" "$schema"; }
tools() {
    local change=first
    [ -e "$directory/changed" ] && change=second
    printf '{"tools":['
    for name in echo fail refuse progress slow die image structured ask form page script hasty environment demand insist sample leave think rash retract picture flood insatiable; do
        tool "$name" "does $name"; printf ','
    done
    tool turns "the $change"
    printf '%s' ']}'
}
pages() {
    case $line in
        *'"cursor":"two"'*) printf '{"tools":[%s]}' "$(tool 'a tool with a name that is far longer than any provider would take it, see' long)" ;;
        *) printf '{"tools":[%s,%s],"nextCursor":"two"}' "$(tool 'a.b' dot)" "$(tool 'a b' space)" ;;
    esac
}

form() {
    say '{"jsonrpc":"2.0","id":902,"method":"elicitation/create","params":{"mode":"form","message":"your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer"},"city":{"type":"string","default":"Rome"}},"required":["name"]}}}'
}

page() {
    say "{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"elicitationId\":\"e1\",\"message\":\"please pay\",\"url\":\"$1\"}}"
}

# The call ends, and is to be made again with what is asked for and this state.
demand() { result "{\"resultType\":\"input_required\"${1:+,\"inputRequests\":{$1\}},\"requestState\":\"$2\"}"; }
who='"who":{"method":"elicitation/create","params":{"mode":"form","message":"your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}'
pay='"pay":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","message":"please pay","url":"https://pay.example/order?7"}}'
sample='"say":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"ready?"}}],"maxTokens":1}}'
# Has the model answer, and notes what came of it.
think() { wonder "$1"; read -r answer; echo "$answer" >"$directory/answer"; }
wonder() {
    say "{\"jsonrpc\":\"2.0\",\"id\":904,\"method\":\"sampling/createMessage\",\"params\":{\"systemPrompt\":\"be terse\",\"messages\":[{\"role\":\"user\",\"content\":$1}],\"maxTokens\":50,\"includeContext\":\"allServers\"}}"
}
until_go() { mkfifo "$directory/go" 2>/dev/null; read -r _ <"$directory/go"; }
words() { printf '{"type":"text","text":"%s"}' "$1"; }

sick() {
    local deep=$schema
    for _ in {1..40}; do deep="{\"p\":{\"p\":{\"p\":{\"p\":$deep}}}}"; done
    printf '{"tools":[{"name":"deep","inputSchema":%s},%s,%s]}' "$deep" "$(tool huge d)" "$(tool weird d)"
}

is stubborn && trap '' TERM
is broken && { echo "no such database: secret-of-the-server-123" >&2; exit 7; }
is junk && say 'listening… {not json}' && say ''
echo $$ >"$directory/pid"
echo $$ >>"$directory/starts"
while IFS= read -r line; do
    is mute && continue
    id=; [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
    token=; [[ $line =~ \"progressToken\":([0-9]+) ]] && token=${BASH_REMATCH[1]}
    is tabs && [[ $line == *'"name":"echo"'* ]] && text 'all:\n\tcc x\r\n10 %\r100 %\n' && continue
    case $line in
        *'"method":"server/discover"'*) is newer && result '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' && continue
            say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"method not found\"}}" ;;
        *'"method":"initialize"'*)
            echo "$line" >"$directory/initialize"
            result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{}},"serverInfo":{"name":"fake","version":"1"}}' ;;
        *'"method":"notifications/cancelled"'*) echo "$line" >>"$directory/cancelled" ;;
        *'"method":"notifications/'*) ;;
        *'"method":"tools/list"'*) is sick && result "$(sick)" && continue; is big && result "$(pages)" || result "$(tools)" ;;
        *'"method":"resources/list"'*) result '{"resources":[{"uri":"fake://one","name":"one"}]}' ;;
        *'"method":"resources/read"'*) result '{"contents":[{"uri":"fake://one","text":"inside"}]}' ;;
        *'"method":"prompts/list"'*) result '{"prompts":[{"name":"greet"}]}' ;;
        *'"method":"prompts/get"'*) result '{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}' ;;
        *'"name":"echo"'*) echo "$line" >>"$directory/echo"; text 'echoed' ;;
        *'"name":"huge"'*) text "$(printf '%16000000s' x)" ;;
        *'"name":"weird"'*) result '{"content":[{"type":"weird"},{"type":"text","text":"the rest"}]}' ;;
        *'"name":"fail"'*) result '{"content":[{"type":"text","text":"it went wrong"}],"isError":true}' ;;
        *'"name":"refuse"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"no such thing\"}}" ;;
        *'"name":"progress"'*)
            say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$token,\"progress\":1,\"total\":2,\"message\":\"half\"}}"
            # Answered only once the test has seen it.
            mkfifo "$directory/go" 2>/dev/null; read -r _ <"$directory/go"; text 'through' ;;
        *'"name":"slow"'*) echo begun >"$directory/slow" ;;
        *'"name":"die"'*) kill -9 $$ ;;
        *'"name":"image"'*) result '{"content":[{"type":"image","mimeType":"image/gif","data":"R0lGODlhAQABAAAAACw="}]}' ;;
        *'"name":"structured"'*) result '{"content":[],"structuredContent":{"degrees":21}}' ;;
        *'"name":"ask"'*)
            say '{"jsonrpc":"2.0","id":901,"method":"elicitation/create","params":{"message":"your name?","requestedSchema":{"type":"object","properties":{}}}}'
            read -r answer; echo "$answer" >"$directory/answer"; text 'asked' ;;
        *'"name":"form"'*) form; read -r answer; echo "$answer" >"$directory/answer"; text 'asked' ;;
        *'"name":"page"'*) page 'https://pay.example/order?7'; read -r answer; echo "$answer" >"$directory/answer"; text 'asked' ;;
        *'"name":"script"'*) page 'javascript:alert(1)'; read -r answer; echo "$answer" >"$directory/answer"; text 'asked' ;;
        *'"name":"demand"'*)
            echo "$line" >>"$directory/demands"
            case $line in
                *'"requestState":"two"'*) text 'through' ;;
                *'"requestState":"one"'*) demand '' two ;;
                *) demand "$who,$pay" one ;;
            esac ;;
        *'"name":"insist"'*) echo "$line" >>"$directory/demands"; demand "$who" on ;;
        *'"name":"sample"'*)
            case $line in
                *'"inputResponses"'*) echo "$line" >"$directory/sampled"; text 'sampled' ;;
                *) demand "$sample" on ;;
            esac ;;
        *'"name":"think"'*) think "$(words 'what is the answer?')"; text 'thought' ;;
        *'"name":"rash"'*) wonder "$(words 'what is the answer?')"; until_go; text 'did without' ;;
        *'"name":"retract"'*) wonder "$(words 'what is the answer?')"; until_go
            say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":904}}'; text 'did without' ;;
        *'"name":"picture"'*) think '{"type":"image","data":"R0lGODlhAQABAAAAACw=","mimeType":"image/gif"}'; text 'thought' ;;
        *'"name":"flood"'*) think "$(words "$(printf '%040000d' 7)")"; text 'thought' ;;
        *'"name":"insatiable"'*) for _ in 1 2 3 4 5 6; do think "$(words 'again')"; done; text 'thought' ;;
        *'"name":"leave"'*) demand "$who" on; mkfifo "$directory/go" 2>/dev/null; read -r _ <"$directory/go"; exit 1 ;;
        *'"name":"hasty"'*) form; mkfifo "$directory/go" 2>/dev/null; read -r _ <"$directory/go"; text 'did without' ;;
        *'"result":'*) echo "$line" >"$directory/late" ;;
        *'"name":"environment"'*) env >"$directory/environment"; text 'written' ;;
        *'"name":"turns"'*)
            : >"$directory/changed"; text 'turned'
            for _ in 1 2 3; do say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; done ;;
        *) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"method not found\"}}" ;;
    esac
done
is stubborn && while :; do read -rt 60 _ <>"$directory/never" 2>/dev/null || sleep 60; done
