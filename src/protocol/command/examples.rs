//! A frame for each request, shown to whoever sends a wrong one.

const EXAMPLES: [&str; 56] = [
    r#"{"type":"session:configure","trustLevel":"guided"}"#,
    r#"{"type":"session:resume","sessionId":"…","lastSeq":17}"#,
    r#"{"type":"session:open","sessionId":"…"}"#,
    r#"{"type":"session:list","query":"login","limit":20}"#,
    r#"{"type":"session:rename","title":"Login page"}"#,
    r#"{"type":"session:archive","archived":true}"#,
    r#"{"type":"session:label","labels":["shop"]}"#,
    r#"{"type":"session:export","format":"jsonl"}"#,
    r#"{"type":"session:import","text":"…"}"#,
    r#"{"type":"session:delete","sessionId":"…"}"#,
    r#"{"type":"session:fork","before":4}"#,
    r#"{"type":"session:ping"}"#,
    r#"{"type":"session:state"}"#,
    r#"{"type":"session:status"}"#,
    r#"{"type":"session:take-over"}"#,
    r#"{"type":"chat:send","content":"hi"}"#,
    r#"{"type":"chat:cancel","conversationId":"default"}"#,
    r#"{"type":"chat:history","conversationId":"default"}"#,
    r#"{"type":"chat:queue","conversationId":"default"}"#,
    r#"{"type":"chat:compact","conversationId":"default"}"#,
    r#"{"type":"chat:close","conversationId":"default"}"#,
    r#"{"type":"chat:tool-approve","toolId":"t1","approved":true}"#,
    r#"{"type":"chat:tool-input","requestId":"i1","action":"accept","content":{"name":"Ada"}}"#,
    r#"{"type":"chat:tool-output","toolId":"t1","content":"opened"}"#,
    r#"{"type":"chat:budget-approve","requestId":"c1","extendUsd":2.0}"#,
    r#"{"type":"chat:tool-extend","toolId":"t1"}"#,
    r#"{"type":"approval:list"}"#,
    r#"{"type":"approval:revoke","ruleId":"…"}"#,
    r#"{"type":"provider:list"}"#,
    r#"{"type":"provider:configure","provider":"openai","apiKey":"…"}"#,
    r#"{"type":"provider:validate","provider":"openai"}"#,
    r#"{"type":"search:configure","searxngUrl":"http://localhost:8080"}"#,
    r#"{"type":"workflow:list"}"#,
    r#"{"type":"workflow:put","name":"review","workflow":{"trustLevel":"guided","toolPermissions":{"file_read":{"allowed":true}}}}"#,
    r#"{"type":"config:get","key":"chat"}"#,
    r#"{"type":"config:reload"}"#,
    r#"{"type":"model:list"}"#,
    r#"{"type":"tool:list"}"#,
    r#"{"type":"tool:register","tools":[{"name":"open_file","description":"Opens a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}"#,
    r#"{"type":"tool:unregister","names":["open_file"]}"#,
    r#"{"type":"tool:execute","toolName":"bash","input":{"command":"npm test"}}"#,
    r#"{"type":"tool:cancel","toolId":"t1"}"#,
    r#"{"type":"tool:expose","conversationId":"default","port":5173}"#,
    r#"{"type":"tool:status","toolId":"t1"}"#,
    r#"{"type":"tool:output","toolId":"t1"}"#,
    r#"{"type":"tool:history","limit":20}"#,
    r#"{"type":"tool:metrics"}"#,
    r#"{"type":"tool:export","format":"csv","scope":"daemon"}"#,
    r#"{"type":"usage:report","groupBy":"model"}"#,
    r#"{"type":"files:changes","limit":20}"#,
    r#"{"type":"files:revert","messageId":"m1"}"#,
    r#"{"type":"mcp:list"}"#,
    r#"{"type":"mcp:add","name":"time","command":"mcp-server-time"}"#,
    r#"{"type":"mcp:remove","name":"time"}"#,
    r#"{"type":"mcp:read-resource","server":"docs","uri":"file:///a"}"#,
    r#"{"type":"mcp:get-prompt","server":"docs","name":"review"}"#,
];

/// Lists every type of request with a frame that is valid for it.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    // The type stands first in each: {"type":"…".
    let kind = |frame: &'static str| frame.split('"').nth(3);
    EXAMPLES
        .into_iter()
        .filter_map(move |frame| Some((kind(frame)?, frame)))
}
