//! A frame for each request, shown to whoever sends a wrong one.

/// Every request type with a frame that is valid for it.
pub const EXAMPLES: &[(&str, &str)] = &[
    (
        "session:configure",
        r#"{"type":"session:configure","trustLevel":"guided"}"#,
    ),
    (
        "session:resume",
        r#"{"type":"session:resume","sessionId":"…","lastSeq":17}"#,
    ),
    ("session:ping", r#"{"type":"session:ping"}"#),
    ("session:state", r#"{"type":"session:state"}"#),
    ("chat:send", r#"{"type":"chat:send","content":"hi"}"#),
    (
        "chat:cancel",
        r#"{"type":"chat:cancel","conversationId":"default"}"#,
    ),
    (
        "chat:history",
        r#"{"type":"chat:history","conversationId":"default"}"#,
    ),
    (
        "chat:close",
        r#"{"type":"chat:close","conversationId":"default"}"#,
    ),
    (
        "chat:tool-approve",
        r#"{"type":"chat:tool-approve","toolId":"t1","approved":true}"#,
    ),
    (
        "chat:tool-input",
        r#"{"type":"chat:tool-input","requestId":"i1","action":"accept","content":{"name":"Ada"}}"#,
    ),
    (
        "chat:tool-extend",
        r#"{"type":"chat:tool-extend","toolId":"t1"}"#,
    ),
    ("provider:list", r#"{"type":"provider:list"}"#),
    (
        "provider:configure",
        r#"{"type":"provider:configure","provider":"openai","apiKey":"…"}"#,
    ),
    (
        "provider:validate",
        r#"{"type":"provider:validate","provider":"openai"}"#,
    ),
    ("model:list", r#"{"type":"model:list"}"#),
    ("tool:list", r#"{"type":"tool:list"}"#),
    ("tool:cancel", r#"{"type":"tool:cancel","toolId":"t1"}"#),
    ("tool:status", r#"{"type":"tool:status","toolId":"t1"}"#),
    ("tool:output", r#"{"type":"tool:output","toolId":"t1"}"#),
    ("tool:history", r#"{"type":"tool:history","limit":20}"#),
    ("tool:metrics", r#"{"type":"tool:metrics"}"#),
    ("mcp:list", r#"{"type":"mcp:list"}"#),
    (
        "mcp:add",
        r#"{"type":"mcp:add","name":"time","command":"mcp-server-time"}"#,
    ),
    ("mcp:remove", r#"{"type":"mcp:remove","name":"time"}"#),
    (
        "mcp:read-resource",
        r#"{"type":"mcp:read-resource","server":"docs","uri":"file:///a"}"#,
    ),
    (
        "mcp:get-prompt",
        r#"{"type":"mcp:get-prompt","server":"docs","name":"review"}"#,
    ),
];
