/** The version of the contract. */
export declare const PROTOCOL_VERSION = 1;
/** The WebSocket subprotocol. */
export declare const SUBPROTOCOL = "outrigger.v1";
/** A request of one type, or of any. */
export type ClientFrame<K extends keyof Commands = keyof Commands> = {
    [T in K]: {
        type: T;
        id?: RequestId;
        payload: Commands[T];
    };
}[K];
/** An event or an answer of one type, or of any: told apart by `type`. */
export type ServerFrame<K extends keyof Events = keyof Events> = {
    [T in K]: {
        type: T;
        /** Counts from 1 in each session, without gaps. */
        seq?: number;
        /** The `id` of the request that this answers. */
        replyTo?: RequestId;
        /** The task that this is of: the id of the call that began it. Its conversation is `task:` and that id. */
        taskId?: string;
        /** RFC 3339, UTC, milliseconds. */
        timestamp: string;
        payload: Events[T];
    };
}[K];
/**
 * How much is done without asking the user, the least first.
 *
 * - `supervised`: Every call is asked for.
 * - `guided`: What can change something is asked for.
 * - `autonomous`: Only what goes beyond the scope is asked for.
 */
export type TrustLevel = "supervised" | "guided" | "autonomous";
/**
 * What becomes of calls that the user would be asked about.
 *
 * - `deny_all`: They are refused, without a question.
 * - `ask`: The user is asked.
 * - `auto_approve_safe`: The user is asked, but for commands that are proven to read only.
 * - `allow_all`: They run, without a question, as if somebody had said yes. What is blocked or denied stays so.
 */
export type ApprovalPolicy = "deny_all" | "ask" | "auto_approve_safe" | "allow_all";
/**
 * A layer of events; `exchange` is always on and not named.
 *
 * - `stream`: Deltas and tool events.
 * - `state`: `chat:state`.
 * - `message`: `chat:message`: whole messages.
 * - `sessions`: `session:updated`: what changes about kept sessions, this one and others.
 * - `status`: `session:status-changed`: how the session stands, in one word.
 * - `tasks`: What tasks do, besides what they ask; each event only where its own layer is wanted, too.
 * - `servers`: `mcp:log` and `mcp:changed`: what MCP servers say by themselves.
 * - `exchange`: Always on; accepted so that a client may name it.
 */
export type Layer = "stream" | "state" | "message" | "sessions" | "status" | "tasks" | "servers" | "exchange";
/**
 * Names a session: 22 characters of base64url, not guessable.
 */
export type SessionId = string;
/**
 * What a session is exported as.
 *
 * - `jsonl`: JSON lines, of which `session:import` makes the session again.
 * - `markdown`: Markdown, for people; without attachments.
 */
export type SessionFormat = "jsonl" | "markdown";
/**
 * Names a conversation within its session; chosen by the client, `"default"` where it says none.
 */
export type ConversationId = string;
/**
 * Text, or an array of parts.
 */
export type Content = string | Part[];
/**
 * A piece of what a user says or a tool returns.
 */
export type Part = {
    type: "text";
    /**
     * The text itself, UTF-8.
     */
    text: string;
} | {
    type: "image";
    /**
     * Media type, e.g. `image/png`.
     */
    mediaType: string;
    /**
     * The bytes in standard base64.
     */
    data: string;
} | {
    type: "document";
    /**
     * Media type: `application/pdf`, `text/plain`, `text/markdown`, `text/csv`, or another kind of text.
     */
    mediaType: string;
    /**
     * The bytes in standard base64. A text file's are gone once they are read: `text` has all of it.
     */
    data?: string | null;
    /**
     * Its text. Of a PDF that is what models read that do not take PDFs themselves; empty where it has none, as scans do.
     */
    text?: string | null;
    /**
     * The file's name.
     */
    name?: string | null;
    /**
     * How many pages a PDF has. The daemon counts them.
     */
    pages?: number | null;
};
/**
 * Who a message is from.
 *
 * - `user`: The user.
 * - `assistant`: The model.
 * - `tool`: A tool.
 */
export type Role = "user" | "assistant" | "tool";
/**
 * Names one tool call of the model, on all of its events: `t1`, `t2`, … within a session.
 */
export type ToolId = string;
/**
 * Names a compaction: `k1`, `k2`, … within a session.
 */
export type CompactionId = string;
/**
 * How hard a model is to think.
 *
 * - `low`: Little.
 * - `medium`: Some.
 * - `high`: Much.
 */
export type Effort = "low" | "medium" | "high";
/**
 * What to do with a send while an exchange runs.
 *
 * - `queue`: Run it after the current exchange.
 * - `steer`: Put it into the running exchange at the next turn boundary.
 * - `reject`: Do not admit it.
 */
export type WhenBusy = "queue" | "steer" | "reject";
/**
 * Whose view of a conversation.
 *
 * - `record`: All that was said.
 * - `model`: What the model sees: less, where the conversation was compacted.
 */
export type HistoryView = "record" | "model";
/**
 * What to do with the sends that wait.
 *
 * - `list`: Nothing is changed.
 * - `edit`: One says something else; its settings stay.
 * - `move`: One takes another place.
 * - `remove`: One is dropped.
 * - `send`: One waits no longer: it becomes part of the exchange that runs, as with `whenBusy: "steer"`; where none runs, it
 * begins.
 */
export type QueueAction = "list" | "edit" | "move" | "remove" | "send";
/**
 * Names an exchange, on all of its events: `m1`, `m2`, … within a session.
 */
export type MessageId = string;
/**
 * How a conversation is made shorter.
 *
 * - `prune`: Large old results are left out; no model is asked.
 * - `summary`: All but the last messages are summed up.
 */
export type CompactMode = "prune" | "summary";
/**
 * How far an answer reaches.
 *
 * - `once`: This call.
 * - `conversation`: The same again in this conversation.
 * - `session`: The same again in this session.
 * - `project`: The same again in this project, whichever session works in it.
 * - `always`: The same again, wherever it is.
 */
export type Remember = "once" | "conversation" | "session" | "project" | "always";
/**
 * Names what a tool asks of the user while it runs: `i1`, `i2`, … within a session.
 */
export type InputId = string;
/**
 * What a user does with a request for input.
 *
 * - `accept`: Gives it; of a page: has agreed to open it.
 * - `decline`: Says no; the call goes on and may do without.
 * - `cancel`: Closes the question without a decision.
 */
export type InputAction = "accept" | "decline" | "cancel";
/**
 * Names a question whether more may be spent: `c1`, `c2`, … within a session.
 */
export type BudgetId = string;
/**
 * Names a question whether files may speak for the user: `f1`, `f2`, … within a session.
 */
export type TrustId = string;
/**
 * What becomes of an exchange in which a call's path leaves the roots or is denied.
 *
 * - `stop`: It ends when the other calls of the turn have.
 * - `error`: The model reads it as an error and goes on; the third one ends the exchange.
 */
export type OnViolation = "stop" | "error";
/**
 * Whether the user is asked before a call of a client's tool.
 *
 * - `trust`: As the trust level says of what can change something.
 * - `always`: At every trust level, for each call.
 * - `never`: Not but under `supervised`; the operator has to allow it (`tools.client.skip_approval`).
 */
export type ClientApproval = "trust" | "always" | "never";
/**
 * Whose calls are meant.
 *
 * - `session`: This session's.
 * - `daemon`: Those of all sessions that are kept.
 */
export type Scope = "session" | "daemon";
/**
 * How a call stands.
 *
 * - `queued`: It waits, for the user or for another call.
 * - `running`: It runs.
 * - `success`: It worked.
 * - `error`: It failed.
 * - `denied`: It was refused.
 * - `cancelled`: It was cancelled.
 */
export type ExecutionStatus = "queued" | "running" | "success" | "error" | "denied" | "cancelled";
/**
 * How records are written for other programs.
 *
 * - `jsonl`: One record a line, as JSON.
 * - `csv`: Comma-separated values as in RFC 4180.
 */
export type ExportFormat = "jsonl" | "csv";
/**
 * What requests to models are summed by.
 *
 * - `day`: The day, in the zone of `budget.zone`; the oldest first. All else: those first that cost most.
 * - `model`: The model.
 * - `provider`: The provider instance.
 * - `user`: The user: there is one.
 * - `conversation`: The conversation, with its session.
 * - `kind`: What requests were for: `turn`, `title`, `compaction`.
 * - `session`: The session.
 */
export type GroupBy = "day" | "model" | "provider" | "user" | "conversation" | "kind" | "session";
/**
 * Whose a file is.
 *
 * - `user`: The user's own, in the folder of the configuration.
 * - `project`: The project's.
 */
export type InstructionSource = "user" | "project";
/**
 * Codes of `session:error`: what is wrong with a request.
 *
 * - `invalid_json`: The frame is not one JSON object, or nests deeper than 128.
 * - `invalid_payload`: A field is missing or does not fit; the message names it.
 * - `unknown_type`: No request has this type.
 * - `unsupported_frame`: Binary frames carry nothing here.
 * - `approval_not_found`: No approval with this id is open.
 * - `rule_not_found`: No answer that counts for later calls has this id.
 * - `input_not_found`: No request for input with this id is open.
 * - `budget_not_found`: No question about money with this id is open.
 * - `trust_not_found`: No question about files with this id is open.
 * - `not_queued`: No send with this id waits.
 * - `tool_not_found`: No tool, or no call, has this name or id.
 * - `conversation_not_found`: No conversation has this id.
 * - `conversation_busy`: The conversation runs an exchange, or a call works on the files.
 * - `session_not_found`: No session has this id, or its grace period is over.
 * - `replay_gap`: The events kept no longer reach back to the number asked for.
 * - `provider_not_found`: No provider instance has this id.
 * - `provider_not_configured`: The provider that was asked lacks its key.
 * - `provider_auth`: The provider that was asked refused the key (401, 403).
 * - `provider_rate_limited`: The provider that was asked wants to be left alone for a while (429).
 * - `provider_quota`: The provider that was asked wants money.
 * - `provider_overloaded`: The provider that was asked is overloaded (529, 503).
 * - `provider_unavailable`: The provider that was asked cannot be reached, or failed (other 5xx).
 * - `provider_timeout`: The provider that was asked was silent for too long.
 * - `provider_protocol`: The answer of the provider that was asked broke its format.
 * - `provider_invalid_request`: The provider that was asked refused the request (400, 404, 422).
 * - `mcp_error`: An MCP server failed or does not exist.
 * - `forbidden`: The configuration does not allow it.
 * - `config_invalid`: The configuration that was read again is wrong; the one before stays in force.
 * - `too_many_tools`: The client has registered as many tools as it may, or as many bytes of them.
 * - `rate_limited`: Too many requests, or too many who come back to their sessions at once: `retryAfterMs` says when to come again then.
 * - `store_unavailable`: What sessions are kept in does not answer now, or this daemon was silent for so long that others may have its sessions.
 * - `session_elsewhere`: Another daemon on the same database has the session; try again in a while.
 * - `quota_exceeded`: The user does, or keeps, as much as one may (`auth.limits`): `retryAfterMs` says when that is over, where it is known.
 * - `shutting_down`: The daemon is about to end and begins nothing new.
 * - `internal`: A fault of the daemon.
 */
export type SessionCode = "invalid_json" | "invalid_payload" | "unknown_type" | "unsupported_frame" | "approval_not_found" | "rule_not_found" | "input_not_found" | "budget_not_found" | "trust_not_found" | "not_queued" | "tool_not_found" | "conversation_not_found" | "conversation_busy" | "session_not_found" | "replay_gap" | "provider_not_found" | "provider_not_configured" | "provider_auth" | "provider_rate_limited" | "provider_quota" | "provider_overloaded" | "provider_unavailable" | "provider_timeout" | "provider_protocol" | "provider_invalid_request" | "mcp_error" | "forbidden" | "config_invalid" | "too_many_tools" | "rate_limited" | "store_unavailable" | "session_elsewhere" | "quota_exceeded" | "shutting_down" | "internal";
/**
 * How bad a [`Notice`] is.
 *
 * - `info`: Good to know.
 * - `warning`: Something works less well than it should.
 * - `error`: Something does not work.
 */
export type Severity = "info" | "warning" | "error";
/**
 * How a session stands.
 *
 * - `idle`: Nothing runs. What waits since the daemon was started anew does not run.
 * - `running`: An exchange runs, and nobody has to answer anything.
 * - `requires_action`: Somebody has to answer something; others may run meanwhile.
 * - `failed`: Nothing runs, and the last exchange of a conversation ended by `error` or `timeout`.
 */
export type SessionStateName = "idle" | "running" | "requires_action" | "failed";
/**
 * What somebody has to answer.
 *
 * - `approval`: A `chat:tool-confirm`, by `chat:tool-approve`.
 * - `input`: A `chat:tool-input-request`, by `chat:tool-input`.
 * - `budget`: A `chat:budget-confirm`, by `chat:budget-approve`.
 * - `trust`: A `chat:trust-confirm`, by `chat:trust-approve`.
 * - `tool_output`: A `chat:tool-call`, by `chat:tool-output`.
 */
export type RequiredKind = "approval" | "input" | "budget" | "trust" | "tool_output";
/**
 * What a socket may do on its session.
 *
 * - `observer`: It looks: events, and requests that change nothing.
 * - `approver`: It also answers questions, gives them time, and stops what runs.
 * - `driver`: It does everything. There is one at a time.
 */
export type SocketRole = "observer" | "approver" | "driver";
/**
 * What a conversation, or one of its calls, does.
 *
 * - `queued`: The send waits for the exchange before it.
 * - `thinking`: The provider was asked and has not answered in text yet.
 * - `responding`: Text is coming.
 * - `tool-planned`: The model is calling a tool.
 * - `awaiting-approval`: The user is asked about a call.
 * - `awaiting-input`: The user is asked for something by a call that runs.
 * - `awaiting-budget`: A cap does not allow the next request, and the user is asked.
 * - `awaiting-trust`: Files would speak for the user, and the user is asked.
 * - `awaiting-client`: A call waits for the client, which runs it.
 * - `tool-queued`: A call waits for another one.
 * - `tool-executing`: A call runs.
 * - `tool-completed`: A call is settled.
 * - `compacting`: The conversation is made shorter for its model.
 * - `retrying`: The provider failed and is asked again.
 * - `idle`: Nothing runs in the conversation.
 */
export type StateName = "queued" | "thinking" | "responding" | "tool-planned" | "awaiting-approval" | "awaiting-input" | "awaiting-budget" | "awaiting-trust" | "awaiting-client" | "tool-queued" | "tool-executing" | "tool-completed" | "compacting" | "retrying" | "idle";
/**
 * Names a command in the background: `b1`, `b2`, … within a session.
 */
export type BackgroundId = string;
/**
 * How a command in the background stands.
 *
 * - `running`: It runs.
 * - `exited`: It ended by itself.
 * - `killed`: It was ended: by `bash_kill`, by a client, or with its conversation.
 * - `timedOut`: It was ended after its time limit.
 */
export type BackgroundStatus = "running" | "exited" | "killed" | "timedOut";
/**
 * How much harm a call may do, from the least to the most.
 *
 * - `safe`: Reads only; proven, not guessed.
 * - `warning`: Not proven harmless.
 * - `dangerous`: May destroy, publish or run what nobody looked at.
 * - `blocked`: Refused at every trust level.
 */
export type DangerLevel = "safe" | "warning" | "dangerous" | "blocked";
/**
 * How a user gives what is asked for.
 *
 * - `form`: In the fields of `requestedSchema`.
 * - `url`: On the page at `url`; what is given there does not pass through here.
 */
export type InputMode = "form" | "url";
/**
 * What a question of a server is for that wants to know nothing of the user.
 *
 * - `sampling`: The model of the session is to answer what the message shows.
 * - `sampledAnswer`: What the model has answered, which the message shows, is to go to the server.
 */
export type InputPurpose = "sampling" | "sampledAnswer";
/**
 * What a cap is for.
 *
 * - `task`: One task.
 * - `exchange`: One exchange.
 * - `conversation`: A conversation.
 * - `session`: A session.
 * - `user`: A day of the user.
 * - `daemon`: A day of the daemon.
 * - `provider`: A day of a provider instance.
 */
export type BudgetScope = "task" | "exchange" | "conversation" | "session" | "user" | "daemon" | "provider";
/**
 * What a file is that the user is asked about.
 *
 * - `instructions`: Standing instructions.
 * - `skill`: A skill.
 */
export type TrustKind = "instructions" | "skill";
/**
 * What became of a send.
 *
 * - `started`: Its exchange runs.
 * - `queued`: It waits.
 * - `steered`: It becomes part of the running exchange.
 */
export type SendState = "started" | "queued" | "steered";
/**
 * What a part of a request is.
 *
 * - `system`: The system prompt.
 * - `tools`: Descriptions of tools.
 * - `instructions`: Standing instructions from files.
 * - `skills`: The name and description of a skill.
 * - `history`: What the user and the model said; what stands in the place of left-out messages is among it.
 * - `results`: Results of calls.
 */
export type ContextKind = "system" | "tools" | "instructions" | "skills" | "history" | "results";
/**
 * What becomes of a `chat:compact`.
 *
 * - `started`: It began; `chat:compaction` tells how it goes on.
 * - `queued`: It waits for the exchange that runs; `chat:compaction` tells of it.
 * - `nothing_to_do`: Nothing can be left out.
 * - `refused`: A hook said no; the notice `hook_refused` has why.
 */
export type CompactState = "started" | "queued" | "nothing_to_do" | "refused";
/**
 * How a question was settled.
 *
 * - `approved`: The call runs.
 * - `denied`: The call does not run.
 * - `expired`: Nobody answered in time; the call does not run.
 * - `cancelled`: The exchange ended first.
 */
export type Outcome = "approved" | "denied" | "expired" | "cancelled";
/**
 * Who settled a question.
 *
 * - `user`: A client.
 * - `timeout`: The deadline.
 * - `cancel`: The end of the exchange or of the call.
 * - `shutdown`: The end of the daemon.
 * - `room`: Room that was made: only of a question about money, which nobody has to answer any more.
 */
export type By = "user" | "timeout" | "cancel" | "shutdown" | "room";
/**
 * How a request for input was settled.
 *
 * - `answered`: By an answer.
 * - `expired`: Nobody answered in time.
 * - `cancelled`: The call, its exchange or the server's wish ended first.
 */
export type InputOutcome = "answered" | "expired" | "cancelled";
/**
 * Why nobody waits for the output of a call.
 *
 * - `cancel`: The call or its exchange was cancelled.
 * - `timeout`: It took too long.
 * - `gone`: The tool was registered by a client that another one has replaced, and which does not have it.
 * - `shutdown`: The session or the daemon ends.
 */
export type HandedBackReason = "cancel" | "timeout" | "gone" | "shutdown";
/**
 * How the question was settled.
 *
 * - `extended`: The cap was raised, or the request fits without that.
 * - `stopped`: The user wants no more.
 * - `expired`: Nobody answered in time.
 * - `cancelled`: The exchange ended first.
 */
export type BudgetOutcome = "extended" | "stopped" | "expired" | "cancelled";
/**
 * How the question was settled.
 *
 * - `trusted`: The model is told the files.
 * - `refused`: It is not.
 * - `expired`: Nobody answered in time: it is not.
 * - `cancelled`: The exchange ended first.
 */
export type TrustOutcome = "trusted" | "refused" | "expired" | "cancelled";
/**
 * Which stream a piece of live output belongs to.
 *
 * - `stdout`: A command's standard output.
 * - `stderr`: A command's standard error.
 * - `progress`: Progress that a tool reports.
 */
export type OutputStream = "stdout" | "stderr" | "progress";
/**
 * Whether a call worked.
 *
 * - `success`: It did.
 * - `error`: It failed, was refused, or never ran.
 */
export type ResultStatus = "success" | "error";
/**
 * What became of a file.
 *
 * - `created`: It was not there.
 * - `modified`: Its content, its rights, or the whole file is another.
 * - `deleted`: It is gone.
 */
export type FileChange = "created" | "modified" | "deleted";
/**
 * Why an exchange ended.
 *
 * - `end_turn`: The model had said what it had to say.
 * - `max_tokens`: The limit of output tokens was reached.
 * - `stop_sequence`: The model wrote a stop sequence.
 * - `refusal`: The model refused.
 * - `content_filter`: A filter of the provider stopped it.
 * - `cancelled`: The user, or the end of the session, stopped it.
 * - `timeout`: It took too long.
 * - `max_turns`: The limit of turns was reached.
 * - `context_budget`: The context was nearly full.
 * - `budget`: A cap on what may be spent was reached.
 * - `sandbox_violation`: A call's path left the roots or is denied.
 * - `error`: Something failed.
 */
export type StopReason = "end_turn" | "max_tokens" | "stop_sequence" | "refusal" | "content_filter" | "cancelled" | "timeout" | "max_turns" | "context_budget" | "budget" | "sandbox_violation" | "error";
/**
 * How far a compaction is.
 *
 * - `started`: It began.
 * - `done`: The model sees less from now on.
 * - `failed`: Everything stays as it was.
 */
export type CompactionPhase = "started" | "done" | "failed";
/**
 * How a conversation is made shorter.
 *
 * - `prune`: Large old results are left out.
 * - `summary`: A model sums it up.
 * - `mechanical`: It is summed up without a model.
 * - `native`: The vendor compacts it in its own form.
 */
export type CompactionKind = "prune" | "summary" | "mechanical" | "native";
/**
 * Why a conversation is made shorter.
 *
 * - `auto`: It fills the window as far as `compaction.at` says.
 * - `overflow`: The provider said that it does not fit.
 * - `manual`: `chat:compact`.
 * - `model_change`: The next model has a smaller window.
 */
export type CompactionTrigger = "auto" | "overflow" | "manual" | "model_change";
/**
 * Why a compaction came to nothing.
 *
 * - `no_shrink`: What would be left is not enough less.
 * - `thrashing`: The window was full again too soon, several times: nothing is compacted until the user says something.
 * - `cancelled`: It was cancelled.
 * - `too_small`: What has to stay is too large for the window.
 */
export type CompactionFailure = "no_shrink" | "thrashing" | "cancelled" | "too_small";
/**
 * Codes of `chat:error`: why an exchange went wrong, or a send was not admitted.
 *
 * - `provider_not_configured`: The provider instance does not exist or lacks its key.
 * - `provider_auth`: The provider refused the key (401, 403).
 * - `provider_rate_limited`: The provider wants to be left alone for a while (429).
 * - `provider_quota`: The provider wants money.
 * - `provider_overloaded`: The provider is overloaded (529, 503).
 * - `provider_unavailable`: The provider cannot be reached, or failed (other 5xx).
 * - `provider_timeout`: The provider was silent for too long.
 * - `provider_protocol`: The answer broke its format or ended early.
 * - `provider_invalid_request`: The provider refused the request (400, 404, 422).
 * - `budget_exhausted`: A cap on what may be spent is reached.
 * - `model_not_priced`: Money is capped, and nobody knows what the model costs.
 * - `context_overflow`: The conversation does not fit the model's context.
 * - `history_full`: The conversation, or all together, have as many bytes as they may have.
 * - `output_invalid`: The answer does not fit the schema that the send asks for.
 * - `model_no_tools`: The model cannot call tools.
 * - `sandbox_violation`: A call's path left the roots or is denied.
 * - `exchange_timeout`: The exchange took longer than it may.
 * - `queue_full`: The conversation's queue is full.
 * - `conversation_busy`: The conversation runs an exchange, and the send asked to be rejected then.
 * - `interrupted`: The daemon stopped while the exchange ran.
 * - `internal`: A fault of the daemon.
 */
export type ChatCode = "provider_not_configured" | "provider_auth" | "provider_rate_limited" | "provider_quota" | "provider_overloaded" | "provider_unavailable" | "provider_timeout" | "provider_protocol" | "provider_invalid_request" | "budget_exhausted" | "model_not_priced" | "context_overflow" | "history_full" | "output_invalid" | "model_no_tools" | "sandbox_violation" | "exchange_timeout" | "queue_full" | "conversation_busy" | "interrupted" | "internal";
/**
 * What sort of tool it is.
 *
 * - `file`: Reads or writes files of the project.
 * - `exec`: Runs a program.
 * - `search`: Asks a search engine.
 * - `network`: Reads what is on other machines.
 * - `mcp`: Belongs to an MCP server.
 * - `client`: The client runs it.
 * - `task`: Hands work to another model.
 */
export type ToolCategory = "file" | "exec" | "search" | "network" | "mcp" | "client" | "task";
/**
 * Whether a tool is another one than before.
 *
 * - `new`: There was none of this name.
 * - `unchanged`: It is the same.
 * - `changed`: It is another one.
 */
export type RegistrationState = "new" | "unchanged" | "changed";
/**
 * Why a file is not put back.
 *
 * - `changed`: Somebody has changed it since, or something else is in its place.
 * - `gone`: It is gone.
 * - `unchanged`: It is as it was before.
 * - `notKept`: What it held was larger than what is kept, is too old, or could not be kept then.
 * - `command`: A command changed it, of which no content is kept.
 * - `elsewhere`: It lies in a folder that the session does not work in now.
 * - `failed`: The system, or a rule about what tools may write, does not let it be written.
 */
export type NotReverted = "changed" | "gone" | "unchanged" | "notKept" | "command" | "elsewhere" | "failed";
/**
 * Whether a file was put back.
 *
 * - `reverted`: It is as it was before.
 * - `partly`: The later of several changes are undone.
 * - `left`: It was not touched.
 */
export type RevertOutcome = "reverted" | "partly" | "left";
/**
 * How an MCP server is.
 *
 * - `starting`: It was started and has not answered yet.
 * - `ready`: It serves.
 * - `restarting`: It failed and is started again after a while.
 * - `signIn`: It asks its user to sign in.
 * - `failed`: It failed for good.
 * - `stopped`: It was stopped or removed.
 */
export type McpState = "starting" | "ready" | "restarting" | "signIn" | "failed" | "stopped";
/**
 * A list of an MCP server.
 *
 * - `tools`: Its tools.
 * - `resources`: Its resources and their templates.
 * - `prompts`: Its prompts.
 */
export type McpListName = "tools" | "resources" | "prompts";
/**
 * How bad a server calls something, as RFC 5424 has it.
 *
 * - `debug`: For whoever works on the server.
 * - `info`: What it does.
 * - `notice`: Something worth a look.
 * - `warning`: It goes on, but not as it should.
 * - `error`: Something failed.
 * - `critical`: A part of it failed.
 * - `alert`: Somebody has to act.
 * - `emergency`: It is of no use any more.
 */
export type McpLogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
/**
 * A client's own id of a request, given back in its answer.
 */
export type RequestId = string | number;
/**
 * What a client may say: the payload of each type of request.
 */
export interface Commands {
    /**
     * Sets defaults of this session.
     */
    "session:configure": Configure;
    /**
     * Goes on with an earlier session on this socket.
     */
    "session:resume": Resume;
    /**
     * Goes on with another session on this socket, whatever it was used for.
     */
    "session:open": Resume;
    /**
     * Lists the sessions that are kept.
     */
    "session:list": SessionList;
    /**
     * Names a session.
     */
    "session:rename": SessionRename;
    /**
     * Puts a session away, or takes it back.
     */
    "session:archive": SessionArchive;
    /**
     * Labels a session.
     */
    "session:label": SessionLabel;
    /**
     * Reads a session as a file.
     */
    "session:export": SessionExport;
    /**
     * Makes a session of a file.
     */
    "session:import": SessionImport;
    /**
     * Deletes a session for good.
     */
    "session:delete": SessionDelete;
    /**
     * Makes a session of what was said in one, up to a message.
     */
    "session:fork": SessionFork;
    /**
     * Asks for a sign of life; whatever it carries is ignored.
     */
    "session:ping": unknown;
    /**
     * Asks for the whole picture.
     */
    "session:state": unknown;
    /**
     * Asks how the session stands, in one word.
     */
    "session:status": unknown;
    /**
     * Has this socket drive the session, in the place of the one that does.
     */
    "session:take-over": unknown;
    /**
     * Says something in a conversation.
     */
    "chat:send": ChatSend;
    /**
     * Stops the running exchange.
     */
    "chat:cancel": ChatCancel;
    /**
     * Asks for what the daemon remembers.
     */
    "chat:history": ChatHistory;
    /**
     * Lists or changes what waits in a conversation.
     */
    "chat:queue": ChatQueue;
    /**
     * Asks where the window of a conversation's model goes.
     */
    "chat:context": Conversation;
    /**
     * Makes what the model sees of a conversation shorter.
     */
    "chat:compact": ChatCompact;
    /**
     * Cancels and forgets a conversation.
     */
    "chat:close": Conversation;
    /**
     * Answers a `chat:tool-confirm`.
     */
    "chat:tool-approve": ToolApprove;
    /**
     * Answers a `chat:tool-input-request`.
     */
    "chat:tool-input": ToolInput;
    /**
     * Gives the output of a call that the client runs, or a sign of progress.
     */
    "chat:tool-output": ClientOutput;
    /**
     * Answers a `chat:budget-confirm`.
     */
    "chat:budget-approve": BudgetApprove;
    /**
     * Answers a `chat:trust-confirm`.
     */
    "chat:trust-approve": TrustApprove;
    /**
     * Lists the skills there are.
     */
    "skill:list": unknown;
    /**
     * Gives an open question more time, because somebody is at it.
     */
    "chat:tool-extend": ToolExtend;
    /**
     * Lists the answers that count for later calls.
     */
    "approval:list": ApprovalList;
    /**
     * Has answers count no more.
     */
    "approval:revoke": ApprovalRevoke;
    /**
     * Lists the provider instances.
     */
    "provider:list": unknown;
    /**
     * Sets a provider's key or base URL, in memory only.
     */
    "provider:configure": ProviderConfigure;
    /**
     * Asks whether a provider accepts its key.
     */
    "provider:validate": ProviderName;
    /**
     * Sets how the web is searched, in memory only.
     */
    "search:configure": SearchConfigure;
    /**
     * Lists the workflows.
     */
    "workflow:list": unknown;
    /**
     * Adds a workflow, or takes one away that was added so.
     */
    "workflow:put": WorkflowPut;
    /**
     * Asks for the configuration, and where each value comes from.
     */
    "config:get": ConfigGet;
    /**
     * Has the configuration read again.
     */
    "config:reload": unknown;
    /**
     * Lists models.
     */
    "model:list": ModelList;
    /**
     * Lists the tools that a scope comes to.
     */
    "tool:list": ToolList;
    /**
     * Has the model offered tools that the client runs.
     */
    "tool:register": ToolRegister;
    /**
     * Has such tools offered no more.
     */
    "tool:unregister": ToolUnregister;
    /**
     * Runs a tool without a model.
     */
    "tool:execute": ToolExecute;
    /**
     * Ends one execution; the loop goes on.
     */
    "tool:cancel": Tool;
    /**
     * Has this machine's loopback lead to a port of a command in the background.
     */
    "tool:expose": Expose;
    /**
     * Asks for one execution record.
     */
    "tool:status": Tool;
    /**
     * Reads the whole output of one execution.
     */
    "tool:output": ToolOutput;
    /**
     * Lists execution records, newest first.
     */
    "tool:history": ToolHistory;
    /**
     * Asks for counts, durations and what was used, in sum.
     */
    "tool:metrics": MetricsRequest;
    /**
     * Asks for execution records as a text for other programs.
     */
    "tool:export": ToolExport;
    /**
     * Asks what requests to models took and cost, in sum, of all sessions.
     */
    "usage:report": UsageReport;
    /**
     * Lists what calls did to files, newest first.
     */
    "files:changes": FilesChanges;
    /**
     * Undoes what a call, or all of an exchange, did to files.
     */
    "files:revert": FilesRevert;
    /**
     * Lists the MCP servers.
     */
    "mcp:list": unknown;
    /**
     * Adds an MCP server.
     */
    "mcp:add": McpAdd;
    /**
     * Removes an MCP server.
     */
    "mcp:remove": McpName;
    /**
     * Says where to sign in at an MCP server, or takes what the page there answered.
     */
    "mcp:auth": McpAuth;
    /**
     * Forgets the sign-in at an MCP server.
     */
    "mcp:sign-out": McpSignOut;
    /**
     * Reads a resource of an MCP server.
     */
    "mcp:read-resource": McpReadResource;
    /**
     * Gets a prompt of an MCP server.
     */
    "mcp:get-prompt": McpGetPrompt;
    /**
     * Lists the resources of an MCP server.
     */
    "mcp:list-resources": McpListResources;
    /**
     * Lists the prompts of MCP servers.
     */
    "mcp:list-prompts": McpListPrompts;
    /**
     * Gets a prompt as what a user says.
     */
    "mcp:use-prompt": McpUsePrompt;
    /**
     * Asks to be told when a resource changes.
     */
    "mcp:subscribe": McpResourceName;
    /**
     * Asks to be told no more.
     */
    "mcp:unsubscribe": McpResourceName;
}
/**
 * Payload of `session:configure`; what is absent stays as it is.
 */
export interface Configure {
    /**
     * How much is done without asking.
     */
    trustLevel?: TrustLevel | null;
    /**
     * What becomes of calls that the user would be asked about.
     */
    approvalPolicy?: ApprovalPolicy | null;
    /**
     * Provider instance.
     */
    provider?: string | null;
    /**
     * Model; empty for the provider's own.
     */
    model?: string | null;
    /**
     * Which layers of events are sent.
     */
    layers?: Layer[] | null;
    /**
     * Named workflow; empty for none.
     */
    workflow?: string | null;
    /**
     * Whether somebody here answers what MCP servers ask of the user in the middle of a call.
     */
    inputRequests?: boolean | null;
    /**
     * Whether somebody here answers whether files of the project may speak for the user.
     */
    trustQuestions?: boolean | null;
    /**
     * Absolute path of the folder to work in: one that the operator allows (`project.allowed`), or the daemon's own
     * project. Only while the session has no conversation.
     */
    project?: string | null;
    /**
     * `true`: nothing of this session is kept from now on, and what was kept is deleted; it ends with the daemon, or
     * `resumeGraceMs` after its last socket. There is no way back.
     */
    ephemeral?: boolean | null;
    /**
     * How much the session may spend.
     */
    budget?: SessionBudget | null;
}
/**
 * What a session may spend, in `session:configure` and its answer.
 */
export interface SessionBudget {
    /**
     * US dollars altogether, what was spent before included.
     */
    maxCostUsd?: number | null;
    /**
     * Whether there is no cap any more.
     */
    unlimited?: boolean;
}
/**
 * Payload of `session:resume` and `session:open`.
 */
export interface Resume {
    /**
     * The session to go on with.
     */
    sessionId: SessionId;
    /**
     * The highest `seq` that the client has; 0 for none.
     */
    lastSeq?: number;
}
/**
 * Payload of `session:list`.
 */
export interface SessionList {
    /**
     * Words that the user or the model said, or that are in the name; each has to be there, the last one, from three
     * letters on, perhaps as a beginning. The first 32 words and 256 characters count.
     */
    query?: string | null;
    /**
     * Only those that work in this folder.
     */
    project?: string | null;
    /**
     * Those that were put away, instead of the others.
     */
    archived?: boolean;
    /**
     * Only those that have each of these labels.
     */
    labels?: string[];
    /**
     * At most so many; 1 to 200, 50 where absent.
     */
    limit?: number | null;
    /**
     * `nextCursor` of the page before.
     */
    cursor?: string | null;
}
/**
 * Payload of `session:rename`.
 */
export interface SessionRename {
    /**
     * Which session; this one where absent.
     */
    sessionId?: SessionId | null;
    /**
     * Its name, 1 to 200 characters.
     */
    title: string;
}
/**
 * Payload of `session:archive`.
 */
export interface SessionArchive {
    /**
     * Which session; this one where absent.
     */
    sessionId?: SessionId | null;
    /**
     * Whether it is put away; `false` takes it back.
     */
    archived?: boolean;
}
/**
 * Payload of `session:label`.
 */
export interface SessionLabel {
    /**
     * Which session; this one where absent.
     */
    sessionId?: SessionId | null;
    /**
     * Its labels, in place of those that it has: up to 16, of 1 to 64 characters.
     */
    labels: string[];
}
/**
 * Payload of `session:export`.
 */
export interface SessionExport {
    /**
     * Which session; this one where absent.
     */
    sessionId?: SessionId | null;
    /**
     * As what.
     */
    format?: SessionFormat;
    /**
     * First byte. With 0 the session is exported as it is now; what follows is of that.
     */
    offset?: number;
    /**
     * Most bytes; 256 KiB where absent, 1 MiB at most.
     */
    limit?: number | null;
}
/**
 * Payload of `session:import`.
 */
export interface SessionImport {
    /**
     * A piece of the file, cut wherever it may be.
     */
    text: string;
    /**
     * Which piece, counted from 0; with 0 a file begins, in place of one that was not finished.
     */
    part?: number;
    /**
     * Whether further pieces follow.
     */
    more?: boolean;
}
/**
 * Payload of `session:delete`.
 */
export interface SessionDelete {
    /**
     * Which session; not this one.
     */
    sessionId: SessionId;
}
/**
 * Payload of `session:fork`.
 */
export interface SessionFork {
    /**
     * Which session; this one where absent.
     */
    sessionId?: SessionId | null;
    /**
     * With `before`: the conversation that is taken; `default` where absent.
     */
    conversationId?: ConversationId | null;
    /**
     * How many messages of the conversation are taken, its first ones, as `chat:history` counts them; 1 to how many
     * there are. All of all conversations are taken where neither is there.
     */
    before?: number | null;
}
/**
 * Payload of `chat:send`.
 */
export interface ChatSend {
    /**
     * Which conversation; made on first use.
     */
    conversationId?: ConversationId;
    /**
     * What the user says; not empty.
     */
    content: Content;
    /**
     * Messages that replace what the daemon remembers.
     */
    history?: WireMessage[] | null;
    /**
     * Provider instance.
     */
    provider?: string | null;
    /**
     * Model.
     */
    model?: string | null;
    /**
     * System prompt.
     */
    systemPrompt?: string | null;
    /**
     * How much is done without asking.
     */
    trustLevel?: TrustLevel | null;
    /**
     * A named workflow of the configuration.
     */
    workflow?: string | null;
    /**
     * Permissions that narrow the workflow's.
     */
    toolPermissions?: {
        [k: string]: Permission;
    } | null;
    /**
     * Most tokens of each answer.
     */
    maxTokens?: number | null;
    /**
     * Sampling temperature, 0 to 2.
     */
    temperature?: number | null;
    /**
     * Whether and how hard to think.
     */
    thinking?: Thinking | null;
    /**
     * What the answer has to be, where a program reads it.
     */
    output?: OutputForm | null;
    /**
     * Limits of this exchange.
     */
    limits?: Limits;
    /**
     * What to do while an exchange runs.
     */
    whenBusy?: WhenBusy;
}
/**
 * A message of a history as clients send and get it.
 */
export interface WireMessage {
    /**
     * Who it is from.
     */
    role: Role;
    /**
     * What it says.
     */
    content: Content;
    /**
     * Thinking of the model, for show.
     */
    thinking?: string | null;
    /**
     * Calls that the model made.
     */
    toolCalls?: WireCall[];
    /**
     * Role `tool`: the call that this answers.
     */
    toolCallId?: ToolId | null;
    /**
     * Role `tool`: the tool's name.
     */
    toolName?: string | null;
    /**
     * Role `tool`: whether the call failed.
     */
    isError?: boolean;
    /**
     * Opaque: what the provider demands back unchanged.
     */
    providerState?: NativeReply | null;
    /**
     * In the model's view of a history: that this stands in the place of other messages.
     */
    compaction?: Compacted | null;
}
/**
 * A tool call within a [`WireMessage`].
 */
export interface WireCall {
    /**
     * The daemon's id, or the client's own in a history that it keeps itself.
     */
    id: ToolId;
    /**
     * The tool's name.
     */
    name: string;
    /**
     * The input.
     */
    input?: {
        [k: string]: unknown;
    };
    /**
     * The provider's own id of the call.
     */
    providerCallId?: string | null;
}
/**
 * A reply in the provider's own form.
 *
 * Thinking signatures, encrypted reasoning items and unknown blocks live here. It is opaque to
 * every layer but the provider's module that made it, and of no use to any other model.
 */
export interface NativeReply {
    /**
     * The wire format the items are in, e.g. `anthropic-messages`.
     */
    wire: string;
    /**
     * The provider instance that made it.
     */
    provider: string;
    /**
     * The model that made it.
     */
    model: string;
    /**
     * What has to go back unchanged, in the wire format's own shape.
     */
    items: {
        [k: string]: unknown;
    };
}
/**
 * Which messages a summary stands for.
 */
export interface Compacted {
    /**
     * The compaction that made it.
     */
    id: CompactionId;
    /**
     * The first and the last message that it stands for, counted from 0.
     *
     * @minItems 2
     * @maxItems 2
     */
    replaces: [unknown, unknown];
}
/**
 * What one tool may do.
 */
export interface Permission {
    /**
     * Whether the tool is offered at all.
     */
    allowed?: boolean;
    /**
     * Globs, relative to both roots, that its paths must match; all paths where absent.
     */
    paths?: string[] | null;
    /**
     * Longest run of one call: `"120s"` or milliseconds.
     */
    timeout?: string | number | null;
    /**
     * Patterns over the words of each simple command: where all match, it is not asked.
     */
    allow?: string[];
    /**
     * Patterns over the words of each simple command: where one matches, it is refused, and where one may, it is asked for.
     */
    deny?: string[];
    /**
     * Whether commands classed dangerous are in scope.
     */
    allowDangerous?: boolean;
    /**
     * Whether commands may use the network without a question.
     */
    allowNetwork?: boolean;
}
/**
 * Whether and how hard the model is to think before it answers.
 */
export interface Thinking {
    /**
     * Whether to think at all.
     */
    enabled: boolean;
    /**
     * Most tokens to think with, for models that take a number; at least 1,024.
     */
    budgetTokens?: number | null;
    /**
     * How hard to think, for models that take a word.
     */
    effort?: Effort | null;
}
/**
 * What an answer has to be.
 */
export interface OutputForm {
    /**
     * JSON schema of an object, 64 KiB at most.
     */
    schema: {
        [k: string]: unknown;
    };
}
/**
 * Limits of an exchange; the configuration's where absent.
 */
export interface Limits {
    /**
     * Most turns; 1 to 200.
     */
    maxTurns?: number | null;
    /**
     * Longest duration in milliseconds, waiting for the user not counted.
     */
    timeoutMs?: number | null;
    /**
     * Tokens of context kept free for the last answer.
     */
    contextReserve?: number | null;
    /**
     * From which share of the model's window on the conversation is compacted, 0 to 1; 0 for never.
     */
    compactAt?: number | null;
    /**
     * Most that it may cost in US dollars, by the prices of the model.
     */
    maxCostUsd?: number | null;
    /**
     * Most fresh tokens: input that no cache had, and output.
     */
    maxFreshTokens?: number | null;
}
/**
 * Payload of `chat:cancel`.
 */
export interface ChatCancel {
    /**
     * Which conversation.
     */
    conversationId?: ConversationId;
    /**
     * Whether queued sends are dropped too.
     */
    queued?: boolean;
}
/**
 * Payload of `chat:history`.
 */
export interface ChatHistory {
    /**
     * Which conversation.
     */
    conversationId?: ConversationId;
    /**
     * Most messages of the answer, 1 at least; without it as many as one frame holds.
     */
    limit?: number | null;
    /**
     * The `nextBefore` of an earlier answer: only messages older than those.
     */
    before?: number | null;
    /**
     * Whose view: of all that was said, or of what the model sees of it.
     */
    view?: HistoryView;
}
/**
 * Payload of `chat:queue`.
 */
export interface ChatQueue {
    /**
     * Which conversation.
     */
    conversationId?: ConversationId;
    /**
     * What to do; the answer has the queue as it is then.
     */
    action?: QueueAction;
    /**
     * Which send; needed by all but `list`.
     */
    messageId?: MessageId | null;
    /**
     * `edit`: what it says from now on; not empty.
     */
    content?: Content | null;
    /**
     * `move`: its place from now on, from 1; beyond the end is the end.
     */
    position?: number | null;
}
/**
 * A payload that names a conversation.
 */
export interface Conversation {
    /**
     * Which conversation.
     */
    conversationId?: ConversationId;
}
/**
 * Payload of `chat:compact`.
 */
export interface ChatCompact {
    /**
     * Which conversation.
     */
    conversationId?: ConversationId;
    /**
     * What the summary is to mind besides, in words for the model; 8 KiB at most.
     */
    instructions?: string | null;
    /**
     * Only this way; without it what is enough.
     */
    mode?: CompactMode | null;
    /**
     * What to do while an exchange runs: `queue` or `reject`.
     */
    whenBusy?: WhenBusy;
}
/**
 * Payload of `chat:tool-approve`.
 */
export interface ToolApprove {
    /**
     * The id from `chat:tool-confirm`.
     */
    toolId: ToolId;
    /**
     * The `host` from it; without one the answer is for the call itself. No answer settles another question than its own.
     */
    host?: string | null;
    /**
     * Whether the call may run, or connect.
     */
    approved: boolean;
    /**
     * Run with this input instead.
     */
    input?: {
        [k: string]: unknown;
    } | null;
    /**
     * How far the answer reaches.
     */
    remember?: Remember;
    /**
     * One of the `folders` of the question: the answer is for writing any file below it.
     */
    folder?: string | null;
    /**
     * Text that the model is given with a refusal.
     */
    reason?: string | null;
    /**
     * With a refusal: nobody was there to be asked. The model reads that, and not that the user refused.
     */
    unattended?: boolean;
}
/**
 * Payload of `chat:tool-input`. The content is never echoed or logged.
 */
export interface ToolInput {
    /**
     * The id from `chat:tool-input-request`.
     */
    requestId: InputId;
    /**
     * What the user decided.
     */
    action: InputAction;
    /**
     * The fields of the form; with `accept` alone.
     */
    content?: {
        [k: string]: unknown;
    } | null;
}
/**
 * Payload of `chat:tool-output`: progress, or the output that ends the call.
 */
export interface ClientOutput {
    /**
     * The id from `chat:tool-call`.
     */
    toolId: ToolId;
    /**
     * A line of progress for whoever watches. Gives the call more time.
     */
    chunk?: string | null;
    /**
     * What the call came to. With it, or with `structured`, the call ends.
     */
    content?: Content | null;
    /**
     * Whether the model should take it for a failure.
     */
    isError?: boolean;
    /**
     * The same as data, for clients; the model reads it where there is no `content`.
     */
    structured?: {
        [k: string]: unknown;
    };
}
/**
 * Payload of `chat:budget-approve`.
 */
export interface BudgetApprove {
    /**
     * The id from `chat:budget-confirm`.
     */
    requestId: BudgetId;
    /**
     * Whether it goes on.
     */
    approved?: boolean;
    /**
     * By how much the cap is raised, in US dollars. Absent: by the first of the choices.
     */
    extendUsd?: number | null;
    /**
     * Whether there is no cap any more.
     */
    unlimited?: boolean;
    /**
     * Where it does not go on: whether the model may give a last answer, without tools.
     */
    finish?: boolean;
}
/**
 * Payload of `chat:trust-approve`.
 */
export interface TrustApprove {
    /**
     * The id from `chat:trust-confirm`.
     */
    requestId: TrustId;
    /**
     * Whether the model is told these files.
     */
    approved: boolean;
}
/**
 * Payload of `chat:tool-extend`.
 */
export interface ToolExtend {
    /**
     * The call that is asked about, or in whose middle something is asked.
     */
    toolId: ToolId;
    /**
     * Of a `chat:tool-input-request`: its id.
     */
    requestId?: InputId | null;
    /**
     * Of a `chat:tool-confirm` with a host: that host.
     */
    host?: string | null;
}
/**
 * Payload of `approval:list`.
 */
export interface ApprovalList {
    /**
     * Only those that reach so far; all that may count in this session where absent.
     */
    scope?: Remember | null;
}
/**
 * Payload of `approval:revoke`: one answer, or all of a scope.
 */
export interface ApprovalRevoke {
    /**
     * Which, as `approval:list` names it.
     */
    ruleId?: string | null;
    /**
     * All that reach so far.
     */
    scope?: Remember | null;
    /**
     * With the scope `conversation`: only those of this one.
     */
    conversationId?: ConversationId | null;
}
/**
 * Payload of `provider:configure`. The key is never echoed or logged.
 */
export interface ProviderConfigure {
    /**
     * Which provider instance.
     */
    provider: string;
    /**
     * Its key; empty to forget the one it has.
     */
    apiKey?: string | null;
    /**
     * Its base URL.
     */
    baseUrl?: string | null;
}
/**
 * A payload that names a provider instance.
 */
export interface ProviderName {
    /**
     * Which provider instance.
     */
    provider: string;
}
/**
 * Payload of `search:configure`. The key is never echoed or logged.
 */
export interface SearchConfigure {
    /**
     * Where SearXNG is; empty for none.
     */
    searxngUrl?: string | null;
    /**
     * Key of the Brave Search API; empty for none.
     */
    braveApiKey?: string | null;
}
/**
 * Payload of `workflow:put`.
 */
export interface WorkflowPut {
    /**
     * Its name, 1 to 64 bytes.
     */
    name: string;
    /**
     * What it is; absent takes away one that was put there.
     */
    workflow?: WorkflowWanted | null;
}
/**
 * A workflow as a client gives it. What is absent is as without a workflow.
 */
export interface WorkflowWanted {
    /**
     * System prompt.
     */
    systemPrompt?: string | null;
    /**
     * How much is done without asking.
     */
    trustLevel?: TrustLevel | null;
    /**
     * What becomes of an exchange in which a path leaves the project or is denied.
     */
    onViolation?: OnViolation | null;
    /**
     * Provider instance.
     */
    provider?: string | null;
    /**
     * Model.
     */
    model?: string | null;
    /**
     * Limits of an exchange.
     */
    limits?: Limits;
    /**
     * What tools may do; empty means those that only read.
     */
    toolPermissions?: {
        [k: string]: Permission;
    };
}
/**
 * Payload of `config:get`.
 */
export interface ConfigGet {
    /**
     * A key such as `chat.model`, or a part of one such as `chat`; all where absent.
     */
    key?: string | null;
}
/**
 * Payload of `model:list`.
 */
export interface ModelList {
    /**
     * Which provider instance; all that are configured where absent.
     */
    provider?: string | null;
}
/**
 * Payload of `tool:list`.
 */
export interface ToolList {
    /**
     * A named workflow.
     */
    workflow?: string | null;
    /**
     * Permissions that narrow it.
     */
    toolPermissions?: {
        [k: string]: Permission;
    } | null;
}
/**
 * Payload of `tool:register`.
 */
export interface ToolRegister {
    /**
     * The tools; one of a name that is registered replaces it.
     */
    tools: ClientTool[];
    /**
     * Whether these are all that there are: others of this session's client are removed.
     */
    replace?: boolean;
}
/**
 * A tool that the client runs.
 */
export interface ClientTool {
    /**
     * Its name, `^[a-zA-Z][a-zA-Z0-9_-]{0,55}$` without `__`; the model calls `client__NAME`.
     */
    name: string;
    /**
     * What it does, for the model.
     */
    description: string;
    /**
     * JSON schema of its input, an object.
     */
    inputSchema: {
        [k: string]: unknown;
    };
    /**
     * Whether it changes nothing.
     */
    readOnly?: boolean;
    /**
     * Whether the user is asked before a call.
     */
    approval?: ClientApproval;
    /**
     * How long a call may wait for its output; a minute where absent. An answer says what is in force.
     */
    timeoutMs?: number | null;
    /**
     * Whether a person is part of the call: the time that it takes does not count towards the exchange's limit.
     */
    interactive?: boolean;
}
/**
 * Payload of `tool:unregister`.
 */
export interface ToolUnregister {
    /**
     * Their names, with or without `client__`; all where absent.
     */
    names?: string[] | null;
}
/**
 * Payload of `tool:execute`.
 */
export interface ToolExecute {
    /**
     * Which conversation; made on first use. The call is one of its calls.
     */
    conversationId?: ConversationId;
    /**
     * The tool's name, as in `tool:list`.
     */
    toolName: string;
    /**
     * The input.
     */
    input?: {
        [k: string]: unknown;
    };
    /**
     * Whether the model is to know of it: the call and its result become a message of the user in the history.
     */
    inject?: boolean;
    /**
     * What to do while an exchange runs: `queue` or `reject`.
     */
    whenBusy?: WhenBusy;
}
/**
 * A payload that names a tool call.
 */
export interface Tool {
    /**
     * Which call.
     */
    toolId: ToolId;
}
/**
 * Payload of `tool:expose`.
 */
export interface Expose {
    /**
     * Which conversation.
     */
    conversationId?: ConversationId;
    /**
     * A port that `tool:port-open` named.
     */
    port: number;
    /**
     * Whether nothing is to lead to it any more.
     */
    close?: boolean;
}
/**
 * Payload of `tool:output`.
 */
export interface ToolOutput {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * First byte.
     */
    offset?: number;
    /**
     * Most bytes; 64 KiB where absent, 1 MiB at most.
     */
    limit?: number | null;
}
/**
 * Payload of `tool:history`.
 */
export interface ToolHistory {
    /**
     * Whose calls.
     */
    scope?: Scope;
    /**
     * Only of conversations with this id.
     */
    conversationId?: ConversationId | null;
    /**
     * Only of exchanges with this provider.
     */
    provider?: string | null;
    /**
     * Only this tool's.
     */
    toolName?: string | null;
    /**
     * Only with this status.
     */
    status?: ExecutionStatus | null;
    /**
     * Only started at or after this time, RFC 3339.
     */
    since?: string | null;
    /**
     * Only started before this time, RFC 3339.
     */
    until?: string | null;
    /**
     * Most records; 50 where absent, 1,000 at most.
     */
    limit?: number | null;
    /**
     * The `nextCursor` of the page before.
     */
    cursor?: string | null;
}
/**
 * Payload of `tool:metrics`.
 */
export interface MetricsRequest {
    /**
     * Whose calls.
     */
    scope?: Scope;
    /**
     * Of the last so many days (UTC), today among them; 1 to 800. Where absent, of all that there are sums of.
     */
    days?: number | null;
}
/**
 * Payload of `tool:export`; all but `format` as in `tool:history`.
 */
export interface ToolExport {
    /**
     * How they are written.
     */
    format: ExportFormat;
    /**
     * Whose calls.
     */
    scope?: Scope;
    /**
     * Only of conversations with this id.
     */
    conversationId?: ConversationId | null;
    /**
     * Only of exchanges with this provider.
     */
    provider?: string | null;
    /**
     * Only this tool's.
     */
    toolName?: string | null;
    /**
     * Only with this status.
     */
    status?: ExecutionStatus | null;
    /**
     * Only started at or after this time, RFC 3339.
     */
    since?: string | null;
    /**
     * Only started before this time, RFC 3339.
     */
    until?: string | null;
    /**
     * Most records of this piece; 1,000 where absent, and at most.
     */
    limit?: number | null;
    /**
     * The `nextCursor` of the piece before.
     */
    cursor?: string | null;
}
/**
 * Payload of `usage:report`.
 */
export interface UsageReport {
    /**
     * Requests from this time on, RFC 3339; of the last 30 days where absent.
     */
    since?: string | null;
    /**
     * Requests before this time, RFC 3339; up to now where absent.
     */
    until?: string | null;
    /**
     * By what they are summed.
     */
    groupBy?: GroupBy;
}
/**
 * Payload of `files:changes`.
 */
export interface FilesChanges {
    /**
     * Only those in this conversation.
     */
    conversationId?: ConversationId | null;
    /**
     * Only those of this exchange and later ones.
     */
    since?: MessageId | null;
    /**
     * At most so many; 1 to 200, 50 where absent.
     */
    limit?: number | null;
    /**
     * `nextCursor` of the page before.
     */
    cursor?: string | null;
}
/**
 * Payload of `files:revert`: one of the two ids.
 */
export interface FilesRevert {
    /**
     * The exchange whose changes are undone, or the `messageId` that an earlier `files:revert` was answered with.
     */
    messageId?: MessageId | null;
    /**
     * The one call whose change is undone.
     */
    toolId?: ToolId | null;
}
/**
 * Payload of `mcp:add`: a command, or a URL.
 */
export interface McpAdd {
    /**
     * The server's name.
     */
    name: string;
    /**
     * The program of a server over stdio.
     */
    command?: string | null;
    /**
     * Its arguments.
     */
    args?: string[];
    /**
     * Variables added to its environment.
     */
    env?: {
        [k: string]: string;
    };
    /**
     * The endpoint of a server over HTTP.
     */
    url?: string | null;
    /**
     * Extra headers for it.
     */
    headers?: {
        [k: string]: string;
    };
}
/**
 * A payload that names an MCP server.
 */
export interface McpName {
    /**
     * Which server.
     */
    name: string;
}
/**
 * Payload of `mcp:auth`: a server alone to be told where to sign in, or what the page there answered.
 */
export interface McpAuth {
    /**
     * Which server.
     */
    server: string;
    /**
     * The address that the page led to, pasted.
     */
    url?: string | null;
    /**
     * The code, where the page shows nothing but that.
     */
    code?: string | null;
}
/**
 * Payload of `mcp:sign-out`.
 */
export interface McpSignOut {
    /**
     * Which server.
     */
    server: string;
}
/**
 * Payload of `mcp:read-resource`.
 */
export interface McpReadResource {
    /**
     * Which server.
     */
    server: string;
    /**
     * Which resource.
     */
    uri: string;
}
/**
 * Payload of `mcp:get-prompt`.
 */
export interface McpGetPrompt {
    /**
     * Which server.
     */
    server: string;
    /**
     * Which prompt.
     */
    name: string;
    /**
     * Its arguments.
     */
    arguments?: {
        [k: string]: unknown;
    };
}
/**
 * Payload of `mcp:list-resources`.
 */
export interface McpListResources {
    /**
     * Which server.
     */
    server: string;
    /**
     * The most entries, 1 to 200; 100 where it is absent.
     */
    limit?: number | null;
    /**
     * Where to go on: `nextCursor` of the page before.
     */
    cursor?: string | null;
}
/**
 * Payload of `mcp:list-prompts`.
 */
export interface McpListPrompts {
    /**
     * Which server; all of them where it is absent.
     */
    server?: string | null;
    /**
     * The most entries, 1 to 200; 100 where it is absent.
     */
    limit?: number | null;
    /**
     * Where to go on: `nextCursor` of the page before.
     */
    cursor?: string | null;
}
/**
 * Payload of `mcp:use-prompt`: a prompt as what a user says.
 */
export interface McpUsePrompt {
    /**
     * `command` of the prompt, with or without its slash.
     */
    command: string;
    /**
     * What the user typed behind it: its arguments in their order, or `NAME=VALUE`. Quotes hold words together; the last
     * argument takes all that is left.
     */
    line?: string;
    /**
     * Arguments by name, in the place of a line or besides it.
     */
    arguments?: {
        [k: string]: unknown;
    };
}
/**
 * Payload of `mcp:subscribe` and `mcp:unsubscribe`, and of what answers them.
 */
export interface McpResourceName {
    /**
     * Which server.
     */
    server: string;
    /**
     * Which resource.
     */
    uri: string;
}
/**
 * What a client gets: the payload of each type of event or answer.
 */
export interface Events {
    /**
     * The socket is on a session.
     */
    "session:ready": Ready;
    /**
     * A request is wrong, or cannot be fulfilled.
     */
    "session:error": SessionError;
    /**
     * Something that is no conversation's error.
     */
    "session:notice": Notice;
    /**
     * Something changed about a kept session.
     */
    "session:updated": SessionUpdated;
    /**
     * Answers `session:configure`.
     */
    "session:configure-result": Configured;
    /**
     * Answers `session:ping`.
     */
    "session:ping-result": Empty;
    /**
     * Answers `session:status`.
     */
    "session:status-result": SessionStatus;
    /**
     * The session stands otherwise than before.
     */
    "session:status-changed": SessionStatus;
    /**
     * Answers `session:take-over`.
     */
    "session:take-over-result": TakenOver;
    /**
     * Who is on the session.
     */
    "session:roles": SessionRoles;
    /**
     * Ends a resync that one socket alone gets, and says up to which number that tells.
     */
    "session:resynced": Resynced;
    /**
     * Answers `session:state`.
     */
    "session:state-result": SessionState;
    /**
     * Answers `chat:send`.
     */
    "chat:send-result": Sent;
    /**
     * Answers `chat:cancel`.
     */
    "chat:cancel-result": Cancelled;
    /**
     * Answers `chat:history`, and follows a replay gap.
     */
    "chat:history-result": History;
    /**
     * Answers `chat:queue`.
     */
    "chat:queue-result": QueueListed;
    /**
     * Answers `chat:context`.
     */
    "chat:context-result": ContextUse;
    /**
     * Answers `chat:compact`.
     */
    "chat:compact-result": Compacting;
    /**
     * Answers `chat:close`.
     */
    "chat:close-result": Closed;
    /**
     * Answers `chat:tool-approve`.
     */
    "chat:tool-approve-result": Approved;
    /**
     * Answers `chat:tool-input`.
     */
    "chat:tool-input-result": InputTaken;
    /**
     * Answers `chat:tool-output`.
     */
    "chat:tool-output-result": OutputTaken;
    /**
     * Answers `chat:tool-extend`.
     */
    "chat:tool-extend-result": Extended;
    /**
     * Answers `chat:budget-approve`.
     */
    "chat:budget-approve-result": BudgetTaken;
    /**
     * Answers `chat:trust-approve`.
     */
    "chat:trust-approve-result": TrustTaken;
    /**
     * Answers `skill:list`.
     */
    "skill:list-result": SkillsListed;
    /**
     * A send waits for its turn.
     */
    "chat:queued": Queued;
    /**
     * An exchange began.
     */
    "chat:stream-start": StreamStart;
    /**
     * More text of the answer.
     */
    "chat:text-delta": Delta;
    /**
     * More thinking.
     */
    "chat:thinking-delta": Delta;
    /**
     * More of a call's input, as the model writes it.
     */
    "chat:tool-input-delta": ToolInputDelta;
    /**
     * The user is asked.
     */
    "chat:tool-confirm": ToolConfirm;
    /**
     * A question is settled.
     */
    "chat:tool-resolved": ToolResolved;
    /**
     * A running call asks the user for something.
     */
    "chat:tool-input-request": ToolInputRequest;
    /**
     * What a call asked for is settled.
     */
    "chat:tool-input-resolved": ToolInputResolved;
    /**
     * A call that the client is to run.
     */
    "chat:tool-call": HandedOut;
    /**
     * Nobody waits for the output of such a call any more.
     */
    "chat:tool-cancelled": HandedBack;
    /**
     * A cap does not allow the next request to the model, and the user is asked.
     */
    "chat:budget-confirm": BudgetConfirm;
    /**
     * The question whether more may be spent is settled.
     */
    "chat:budget-resolved": BudgetResolved;
    /**
     * Files of the project would speak for the user, and the user is asked.
     */
    "chat:trust-confirm": TrustConfirm;
    /**
     * The question whether files may speak for the user is settled.
     */
    "chat:trust-resolved": TrustResolved;
    /**
     * The files that the model is told as the user's words are others than at the begin of the exchange.
     */
    "chat:instructions": InstructionsChanged;
    /**
     * A question lapses later than was announced.
     */
    "chat:tool-extended": ToolExtended;
    /**
     * A call runs.
     */
    "chat:tool-start": ToolStart;
    /**
     * A running call has output.
     */
    "chat:tool-delta": ToolDelta;
    /**
     * A command in the background began or ended.
     */
    "tool:background": BackgroundChanged;
    /**
     * A command in the background began to listen on a port.
     */
    "tool:port-open": PortOpened;
    /**
     * A call is settled.
     */
    "chat:tool-result": ToolOutcome;
    /**
     * A turn's tokens.
     */
    "chat:usage": TurnUsage;
    /**
     * What the model sees of a conversation is made shorter.
     */
    "chat:compaction": Compaction;
    /**
     * What a conversation is doing.
     */
    "chat:state": State;
    /**
     * A whole message.
     */
    "chat:message": WholeMessage;
    /**
     * A steered message became part of the exchange.
     */
    "chat:steered": Steered;
    /**
     * The deltas of a turn are void; it is run again.
     */
    "chat:turn-discarded": TurnDiscarded;
    /**
     * An exchange went wrong, or a send was not admitted.
     */
    "chat:error": ChatError;
    /**
     * The answer of an exchange, as the data that its send asked for.
     */
    "chat:output": AnswerOutput;
    /**
     * An exchange is over; nothing of it follows.
     */
    "chat:stream-end": StreamEnd;
    /**
     * Answers `approval:list`.
     */
    "approval:list-result": ApprovalRules;
    /**
     * Answers `approval:revoke`.
     */
    "approval:revoke-result": ApprovalsRevoked;
    /**
     * Answers `provider:list`.
     */
    "provider:list-result": Providers;
    /**
     * Answers `session:list`.
     */
    "session:list-result": SessionPage;
    /**
     * Answers `session:rename`.
     */
    "session:rename-result": SessionChanged;
    /**
     * Answers `session:archive`.
     */
    "session:archive-result": SessionChanged;
    /**
     * Answers `session:label`.
     */
    "session:label-result": SessionChanged;
    /**
     * Answers `session:export`.
     */
    "session:export-result": SessionExported;
    /**
     * Answers `session:import`.
     */
    "session:import-result": SessionImported;
    /**
     * Answers `session:delete`.
     */
    "session:delete-result": SessionDeleted;
    /**
     * Answers `session:fork`.
     */
    "session:fork-result": SessionForked;
    /**
     * Answers `provider:configure`.
     */
    "provider:configure-result": ProviderConfigured;
    /**
     * Answers `provider:validate`.
     */
    "provider:validate-result": ProviderValidated;
    /**
     * Answers `search:configure`.
     */
    "search:configure-result": SearchConfigured;
    /**
     * Answers `workflow:list`.
     */
    "workflow:list-result": Workflows;
    /**
     * Answers `workflow:put`, with all there are then.
     */
    "workflow:put-result": Workflows;
    /**
     * Answers `config:get`.
     */
    "config:get-result": ConfigValues;
    /**
     * Answers `config:reload`.
     */
    "config:reload-result": ConfigReloaded;
    /**
     * Answers `model:list`.
     */
    "model:list-result": Models;
    /**
     * Answers `tool:list`.
     */
    "tool:list-result": Tools;
    /**
     * Answers `tool:register`.
     */
    "tool:register-result": ToolsRegistered;
    /**
     * Answers `tool:unregister`.
     */
    "tool:unregister-result": ToolsUnregistered;
    /**
     * Answers `tool:execute`.
     */
    "tool:execute-result": Executing;
    /**
     * Answers `tool:expose`.
     */
    "tool:expose-result": Exposed;
    /**
     * Answers `tool:cancel`.
     */
    "tool:cancel-result": ToolCancelled;
    /**
     * Answers `tool:status`.
     */
    "tool:status-result": ExecutionRecord;
    /**
     * Answers `tool:output`.
     */
    "tool:output-result": OutputRange;
    /**
     * Answers `tool:history`.
     */
    "tool:history-result": Executions;
    /**
     * Answers `tool:metrics`.
     */
    "tool:metrics-result": ToolMetrics;
    /**
     * Answers `tool:export`.
     */
    "tool:export-result": Export;
    /**
     * Answers `usage:report`.
     */
    "usage:report-result": UsageReported;
    /**
     * Answers `files:changes`.
     */
    "files:changes-result": FileChanges;
    /**
     * Answers `files:revert`.
     */
    "files:revert-result": FilesReverted;
    /**
     * Answers `mcp:list`.
     */
    "mcp:list-result": McpServers;
    /**
     * Answers `mcp:add`.
     */
    "mcp:add-result": McpServer;
    /**
     * Answers `mcp:remove`.
     */
    "mcp:remove-result": McpServer;
    /**
     * An MCP server asks its user to sign in.
     */
    "mcp:auth-required": McpAuthRequired;
    /**
     * Answers `mcp:auth`.
     */
    "mcp:auth-result": McpAuthState;
    /**
     * Answers `mcp:sign-out`.
     */
    "mcp:sign-out-result": McpServer;
    /**
     * Answers `mcp:read-resource`, as the server gave it.
     */
    "mcp:read-resource-result": {
        [k: string]: unknown;
    };
    /**
     * Answers `mcp:get-prompt`, as the server gave it.
     */
    "mcp:get-prompt-result": {
        [k: string]: unknown;
    };
    /**
     * Answers `mcp:list-resources`.
     */
    "mcp:list-resources-result": McpResources;
    /**
     * Answers `mcp:list-prompts`.
     */
    "mcp:list-prompts-result": McpPrompts;
    /**
     * Answers `mcp:use-prompt`.
     */
    "mcp:use-prompt-result": McpPromptContent;
    /**
     * Answers `mcp:subscribe`.
     */
    "mcp:subscribe-result": McpResourceName;
    /**
     * Answers `mcp:unsubscribe`.
     */
    "mcp:unsubscribe-result": McpResourceName;
    /**
     * A resource that the session follows may be another one than before.
     */
    "mcp:resource-updated": McpResourceName;
    /**
     * Lists of an MCP server are others than before.
     */
    "mcp:changed": McpChanged;
    /**
     * A line of an MCP server's log.
     */
    "mcp:log": McpLog;
}
/**
 * Payload of `session:ready`.
 */
export interface Ready {
    /**
     * Version of the contract: 1.
     */
    protocolVersion: number;
    /**
     * Version of the daemon.
     */
    daemonVersion: string;
    /**
     * The session's id, to resume it by.
     */
    sessionId: SessionId;
    /**
     * Whether this is an earlier session going on.
     */
    resumed: boolean;
    /**
     * How long what runs goes on after the session's last socket, in milliseconds; without a store, also how long the
     * session can be resumed.
     */
    resumeGraceMs: number;
    /**
     * Whether the session is kept: it can be resumed after the daemon was started anew, too.
     */
    persistent: boolean;
    /**
     * How often the session was begun, the first time included: it was begun anew where it is more than before.
     */
    epoch: number;
    /**
     * The session's trust level.
     */
    trustLevel: TrustLevel;
    /**
     * What becomes of an exchange in which a call's path leaves the project or is denied.
     */
    onViolation: OnViolation;
    /**
     * The folder the model works in; absent where there is none.
     */
    project?: Project;
    /**
     * Why there is no project, and what to do.
     */
    projectError?: string;
    /**
     * What is enforced here.
     */
    sandbox: Sandbox;
    /**
     * The provider instances.
     */
    providers: ReadyProvider[];
    /**
     * Names of the tools there are.
     */
    tools: string[];
    /**
     * The layers of events that are sent.
     */
    layers: Layer[];
    /**
     * What this daemon offers beyond the first release of the contract; a client that does not know one ignores it.
     */
    features: string[];
    /**
     * Names of the workflows there are; absent where there are none.
     */
    workflows?: string[];
    /**
     * Files of the user's own and of the project's folder whose words the model is told as the user's, as they were when the
     * session began; absent where there are none.
     */
    instructions?: InstructionFile[];
    /**
     * Whether the socket's token is an operator's, who may ask what is below `/admin/`; with a number in the session, whether
     * that of whoever began it is. Absent where it is not.
     */
    operator?: boolean;
}
/**
 * The folder the model works in.
 */
export interface Project {
    /**
     * Its name.
     */
    name: string;
    /**
     * Its absolute path.
     */
    root: string;
    /**
     * Absolute path of its central storage.
     */
    central: string;
}
/**
 * What is enforced here.
 */
export interface Sandbox {
    /**
     * `full`, `fallback`, `limits`, `unverified` (on macOS and Windows, where it was asked for: nobody tried it on a real
     * machine) or `none`.
     */
    mode: string;
    /**
     * Who keeps paths within the roots: the `kernel`, or the `process` itself.
     */
    paths: string;
    /**
     * The layers around commands.
     */
    commands: string[];
    /**
     * Whether commands reach the network: `off`, `on` or `unenforced`.
     */
    network: string;
    /**
     * Which addresses of loopback a command has that did not ask for the network: `own` (one that its conversation's commands
     * share), `none` (it can neither connect nor listen) or `machine` (nothing keeps it from the machine's); absent from older
     * daemons.
     */
    loopback?: string;
    /**
     * How much of Landlock the kernel has, where it is one of the layers.
     */
    landlock?: Landlock;
    /**
     * What commands are held to; absent from older daemons.
     */
    limits?: SandboxLimits;
}
/**
 * How much of Landlock the kernel has.
 */
export interface Landlock {
    /**
     * Its version (ABI).
     */
    abi: number;
    /**
     * What stays open for want of a newer kernel: `ports`, `devices`, `signals`.
     */
    missing: string[];
}
/**
 * What commands are held to, and by what.
 */
export interface SandboxLimits {
    /**
     * The version of control groups in use, 1 or 2; absent where there are none.
     */
    cgroup?: number;
    /**
     * Memory, in bytes.
     */
    memory: SandboxLimit;
    /**
     * Processor time, in percent of one processor; absent where none is set.
     */
    cpu?: SandboxLimit;
    /**
     * Processes and threads.
     */
    processes: SandboxLimit;
    /**
     * Largest file, in bytes.
     */
    fileSize: SandboxLimit;
    /**
     * What the conversation's home, temporary files and additions to caches hold together, in bytes; absent from older
     * daemons.
     */
    disk?: SandboxLimit;
    /**
     * Why control groups do not hold all of it, for people.
     */
    missing?: string;
}
/**
 * A limit of a command.
 */
export interface SandboxLimit {
    /**
     * How much; absent where nothing enforces it.
     */
    most?: number;
    /**
     * What enforces it: `cgroup` (all processes of a command together), `rlimit` (each by itself), `job` (Windows, all together),
     * `daemon` (which counts, and ends a command that makes it more) or `none`.
     */
    by: string;
}
/**
 * A provider instance in `session:ready`.
 */
export interface ReadyProvider {
    /**
     * Its name in the configuration.
     */
    id: string;
    /**
     * Whether it has what it needs to be asked.
     */
    configured: boolean;
}
/**
 * A file whose words the model is told as the user's.
 */
export interface InstructionFile {
    /**
     * Its path: relative to the project, or absolute where it is the user's own.
     */
    path: string;
    /**
     * The SHA-256 of its bytes, in hexadecimal digits.
     */
    sha256: string;
    /**
     * How many bytes it has.
     */
    bytes: number;
    /**
     * Whose it is.
     */
    source: InstructionSource;
    /**
     * Whether it is known already that the model is told it; else the user is asked first.
     */
    trusted: boolean;
}
/**
 * Payload of `session:error`.
 */
export interface SessionError {
    /**
     * What is wrong, for programs.
     */
    code: SessionCode;
    /**
     * What is wrong and what to do, for people.
     */
    message: string;
    /**
     * After how many milliseconds the same may be asked again, where that is known.
     */
    retryAfterMs?: number;
}
/**
 * Something a client should know that is no conversation's error.
 */
export interface Notice {
    /**
     * How bad it is.
     */
    severity: Severity;
    /**
     * Stable word for programs, `snake_case`.
     */
    code: string;
    /**
     * What happened, to what, and what to do.
     */
    message: string;
}
/**
 * Payload of `session:updated`: what is other than before.
 */
export interface SessionUpdated {
    /**
     * Which session.
     */
    sessionId: SessionId;
    /**
     * Its name.
     */
    title?: string;
    /**
     * Whether it is put away.
     */
    archived?: boolean;
    /**
     * All its labels.
     */
    labels?: string[];
    /**
     * When, RFC 3339.
     */
    updatedAt: string;
    /**
     * Whether there is no such session any more.
     */
    deleted?: boolean;
}
/**
 * Payload of `session:configure-result`: the values now in force.
 */
export interface Configured {
    /**
     * How much is done without asking.
     */
    trustLevel: TrustLevel;
    /**
     * What becomes of calls that the user would be asked about.
     */
    approvalPolicy: ApprovalPolicy;
    /**
     * What becomes of an exchange in which a call's path leaves the project or is denied.
     */
    onViolation: OnViolation;
    /**
     * Provider instance.
     */
    provider: string;
    /**
     * Model; empty for the provider's own.
     */
    model: string;
    /**
     * The provider's own model, as it is configured; absent where it chooses one of those that it has.
     */
    providerModel?: string;
    /**
     * Named workflow; empty for none.
     */
    workflow: string;
    /**
     * Which layers of events are sent.
     */
    layers: Layer[];
    /**
     * Whether somebody answers what MCP servers ask of the user.
     */
    inputRequests?: boolean;
    /**
     * Whether somebody here answers whether files may speak for the user.
     */
    trustQuestions?: boolean;
    /**
     * The folder the model works in; absent where there is none.
     */
    project?: Project;
    /**
     * Why there is no project, and what to do.
     */
    projectError?: string;
    /**
     * Whether nothing of the session is kept.
     */
    ephemeral: boolean;
    /**
     * How much the session may spend; absent where there is no cap.
     */
    budget?: SessionBudget;
}
/**
 * A payload of which nothing is read.
 */
export interface Empty {
}
/**
 * Payload of `session:status-result` and of `session:status-changed`.
 */
export interface SessionStatus {
    /**
     * The word.
     */
    state: SessionStateName;
    /**
     * What somebody has to answer, the oldest first: 64 of them at most.
     */
    requires?: Required[];
    /**
     * How many there are in all, where they are more.
     */
    requiresTotal?: number;
}
/**
 * Something that somebody has to answer.
 */
export interface Required {
    /**
     * What it is.
     */
    kind: RequiredKind;
    /**
     * Whose.
     */
    conversationId: ConversationId;
    /**
     * Which exchange's.
     */
    messageId: MessageId;
    /**
     * Which call's; absent for a question about money.
     */
    toolId?: ToolId;
    /**
     * The `requestId` of a request for input, or of a question about money or files.
     */
    requestId?: string;
    /**
     * The host, where a command asks to connect to it.
     */
    host?: string;
}
/**
 * Payload of `session:take-over-result`.
 */
export interface TakenOver {
    /**
     * The role of this socket now.
     */
    role: SocketRole;
}
/**
 * Payload of `session:roles`: who is on the session.
 */
export interface SessionRoles {
    /**
     * Whether somebody drives.
     */
    driver: boolean;
    /**
     * How many approve.
     */
    approvers: number;
    /**
     * How many observe.
     */
    observers: number;
    /**
     * The role of the socket that gets this, where it is told to that one alone: at its beginning, and when its role is
     * another one.
     */
    role?: SocketRole;
}
/**
 * Payload of `session:resynced`: the end of a resync that one socket alone gets.
 */
export interface Resynced {
    /**
     * The number up to which the socket has everything now.
     */
    seq: number;
}
/**
 * Payload of `session:state-result`.
 */
export interface SessionState {
    /**
     * Every conversation.
     */
    conversations: ConversationState[];
    /**
     * Every open approval.
     */
    approvals: ToolConfirm[];
    /**
     * Every open request for input.
     */
    inputs?: ToolInputRequest[];
    /**
     * Every open question whether more may be spent.
     */
    budgets?: BudgetConfirm[];
    /**
     * Every open question whether files may speak for the user.
     */
    trusts?: TrustConfirm[];
    /**
     * Every call that waits for the client.
     */
    clientCalls?: HandedOut[];
}
/**
 * One conversation in `session:state-result`.
 */
export interface ConversationState {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * What it does.
     */
    state: StateName;
    /**
     * The running exchange.
     */
    messageId?: MessageId;
    /**
     * Exchanges that wait, in order.
     */
    queue: MessageId[];
    /**
     * Commands in the background: those that run, and the last ones that have ended.
     */
    background?: BackgroundCommand[];
}
/**
 * A command in the background of a conversation.
 */
export interface BackgroundCommand {
    /**
     * Its id.
     */
    id: BackgroundId;
    /**
     * The call that started it, by which `tool:output` has its output and `tool:cancel` ends it.
     */
    toolId: ToolId;
    /**
     * The command line, or the beginning of a long one.
     */
    command: string;
    /**
     * When it began, RFC 3339.
     */
    startedAt: string;
    /**
     * How it stands.
     */
    status: BackgroundStatus;
    /**
     * Ports of the conversation's own loopback on which it began to listen, in that order; none once it has ended.
     */
    ports?: ListeningPort[];
    /**
     * Its exit code, once it has ended by itself.
     */
    exitCode?: number;
    /**
     * The signal that ended it.
     */
    signal?: number;
}
/**
 * A port on which a command in the background began to listen.
 */
export interface ListeningPort {
    /**
     * The TCP port, on the conversation's own loopback.
     */
    port: number;
    /**
     * Where this machine's loopback leads to it, such as `http://127.0.0.1:5173/`; absent where `tool:expose` did not ask
     * for it.
     */
    url?: string;
}
/**
 * Payload of `chat:tool-confirm`.
 */
export interface ToolConfirm {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * The tool's name.
     */
    toolName: string;
    /**
     * The whole input.
     */
    input: {
        [k: string]: unknown;
    };
    /**
     * The hook that changed the input, which is not as the model made it then.
     */
    changedBy?: string;
    /**
     * How much harm it may do.
     */
    danger: Danger;
    /**
     * Why it is asked.
     */
    reason: string;
    /**
     * The commands of a command line as the shell reads it, each by its words, those inside wrappers and
     * substitutions too. A word that the shell would expand is as it was written.
     */
    commands?: string[][];
    /**
     * The rules that made the level of danger what it is.
     */
    rules?: TriggeredRule[];
    /**
     * Unified diff of what would be written.
     */
    preview?: string;
    /**
     * The host that the command wants to connect to: the call runs, and the question is for that alone. Absent where it is
     * whether the call may run.
     */
    host?: string;
    /**
     * How far an answer may reach beyond this call; absent where it cannot.
     */
    remember?: RememberOffer;
    /**
     * When the question lapses, RFC 3339; absent where it never does.
     */
    expiresAt?: string;
}
/**
 * How much harm one call may do, and why it is thought so.
 */
export interface Danger {
    /**
     * The level.
     */
    level: DangerLevel;
    /**
     * Each reason in words for the user; empty where the level needs none.
     */
    reasons: string[];
}
/**
 * A rule of the classifier that a command line triggered.
 */
export interface TriggeredRule {
    /**
     * The rule's stable name, e.g. `protected-tree`.
     */
    rule: string;
    /**
     * The level that this rule alone would give.
     */
    level: DangerLevel;
    /**
     * The words that triggered it; empty where it is the line as a whole. Invisible characters are escaped.
     */
    words: string;
}
/**
 * How far an answer may reach beyond its call.
 */
export interface RememberOffer {
    /**
     * An approval, the nearest first; empty where one is for this call alone.
     */
    approval: Remember[];
    /**
     * A denial, the nearest first; empty where one is for this call alone.
     */
    denial: Remember[];
    /**
     * The folders that the file is in, the nearest first: an answer may be for writing any file below one of them. Relative
     * to the project, `.` for all of it; absolute elsewhere.
     */
    folders?: string[];
}
/**
 * Payload of `chat:tool-input-request`.
 */
export interface ToolInputRequest {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * The call in whose middle it is asked.
     */
    toolId: ToolId;
    /**
     * What an answer names.
     */
    requestId: InputId;
    /**
     * The MCP server that asks: to be shown, for the message is its own and not the daemon's.
     */
    server: string;
    /**
     * What the user is to give, in the server's words.
     */
    message: string;
    /**
     * How.
     */
    mode: InputMode;
    /**
     * Of a form: a JSON Schema of one flat object, whose fields are strings, numbers, integers, booleans
     * or choices, in the order in which they are to be shown.
     */
    requestedSchema?: {
        [k: string]: unknown;
    };
    /**
     * Of a page: its address, to be opened only when the user agrees, and shown whole before.
     */
    url?: string;
    /**
     * What it is for, where the server does not want to know something: then the words of `message` are the daemon's, and
     * those of the server are set in, four spaces deep. The form has no fields then.
     */
    purpose?: InputPurpose;
    /**
     * When the question lapses, RFC 3339; absent where it never does.
     */
    expiresAt?: string;
}
/**
 * Payload of `chat:budget-confirm`: a cap does not allow the next request to the model.
 */
export interface BudgetConfirm {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * What an answer names.
     */
    requestId: BudgetId;
    /**
     * What the cap is for.
     */
    scope: BudgetScope;
    /**
     * What was spent of it.
     */
    spentUsd: number;
    /**
     * The cap.
     */
    limitUsd: number;
    /**
     * What the next request is expected to cost.
     */
    nextUsd: number;
    /**
     * Which turn of the exchange waits.
     */
    turn: number;
    /**
     * What may be offered to the user, besides to stop.
     */
    choices: BudgetChoice[];
    /**
     * When the question lapses, RFC 3339; absent where it never does.
     */
    expiresAt?: string;
}
/**
 * A way to go on.
 */
export interface BudgetChoice {
    /**
     * By how much the cap is raised, in US dollars.
     */
    extendUsd?: number;
    /**
     * Whether there is no cap any more.
     */
    unlimited?: boolean;
}
/**
 * Payload of `chat:trust-confirm`: files of the project are there whose words the model would be told as the user's.
 */
export interface TrustConfirm {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange waits.
     */
    messageId: MessageId;
    /**
     * What an answer names.
     */
    requestId: TrustId;
    /**
     * The files, whole: what is told is what is here, whatever they hold later.
     */
    files: TrustFile[];
    /**
     * How far a yes reaches: for these contents at these paths.
     */
    remember: Remember;
    /**
     * When the question lapses, RFC 3339; absent where it never does.
     */
    expiresAt?: string;
}
/**
 * A file that the user is asked about.
 */
export interface TrustFile {
    /**
     * Its path, relative to the project.
     */
    path: string;
    /**
     * What it is.
     */
    kind: TrustKind;
    /**
     * The SHA-256 of its bytes, in hexadecimal digits.
     */
    sha256: string;
    /**
     * How many bytes it has.
     */
    bytes: number;
    /**
     * What it says, whole: without secrets, what is invisible escaped.
     */
    text: string;
}
/**
 * Payload of `chat:tool-call`: the client is to run this, and to answer with `chat:tool-output`.
 */
export interface HandedOut {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call; an answer names it.
     */
    toolId: ToolId;
    /**
     * The tool's name for the model.
     */
    toolName: string;
    /**
     * Its name as it was registered.
     */
    name: string;
    /**
     * The input, as approved. It fits the schema.
     */
    input: {
        [k: string]: unknown;
    };
    /**
     * When the call is given up, RFC 3339; moved by each sign of progress, and later while no client is connected.
     */
    expiresAt?: string;
}
/**
 * Payload of `chat:send-result`.
 */
export interface Sent {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The exchange; for a steered message the one that it becomes part of.
     */
    messageId: MessageId;
    /**
     * What became of the send.
     */
    state: SendState;
    /**
     * Its place in the queue, from 1.
     */
    position?: number;
    /**
     * Whether a send with this `id` was answered before.
     */
    duplicate?: boolean;
}
/**
 * Payload of `chat:cancel-result`.
 */
export interface Cancelled {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Whether there was something to cancel.
     */
    cancelled: boolean;
    /**
     * The calls that were open.
     */
    toolIds: ToolId[];
    /**
     * How many queued sends were dropped.
     */
    queuedDropped: number;
}
/**
 * Payload of `chat:history-result`.
 */
export interface History {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * What the daemon remembers of it, or the page asked for, the oldest first.
     */
    messages: WireMessage[];
    /**
     * Something is left out for its size: the oldest messages where all do not fit one frame
     * (`server.max_frame_bytes`); after a gap already where they are more than their share, or the beginning of
     * what the running turn has said.
     */
    truncated?: boolean;
    /**
     * There are older messages: the `before` of the request for them.
     */
    nextBefore?: number;
}
/**
 * Payload of `chat:queue-result`.
 */
export interface QueueListed {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * What waits, the next one first.
     */
    queue: WaitingSend[];
    /**
     * Whether it waited when the daemon ended, and waits on until the user says something.
     */
    held?: boolean;
}
/**
 * A send that waits.
 */
export interface WaitingSend {
    /**
     * Its exchange.
     */
    messageId: MessageId;
    /**
     * Its place, from 1.
     */
    position: number;
    /**
     * The text that it says, up to 64 KiB of it; empty for a call.
     */
    content: string;
    /**
     * How many pictures and documents it has beside the text.
     */
    attachments?: number;
    /**
     * The tool, where it is a call (`tool:execute`).
     */
    toolName?: string;
}
/**
 * Payload of `chat:context-result`: what the next request of a conversation would hold.
 */
export interface ContextUse {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The provider instance.
     */
    provider: string;
    /**
     * The model; empty where the provider has not said yet which one it is.
     */
    model: string;
    /**
     * All tokens: counted by the provider and, since that, estimated.
     */
    used: number;
    /**
     * The model's window; absent where nobody knows it.
     */
    window?: number;
    /**
     * From how many tokens on the conversation is compacted; absent where nobody knows the window, or it never is.
     */
    compactAt?: number;
    /**
     * What they are for, in the order of a request; together they are `used`.
     */
    parts: ContextPart[];
}
/**
 * A part of a request.
 */
export interface ContextPart {
    /**
     * What it is.
     */
    kind: ContextKind;
    /**
     * Of `tools`: whose they are, such as `core`, `client` or `mcp:NAME`; of `instructions`: the file; of `skills`: the skill.
     */
    name?: string;
    /**
     * About how many tokens.
     */
    tokens: number;
    /**
     * How many there are: tools, messages, results.
     */
    count?: number;
}
/**
 * Payload of `chat:compact-result`.
 */
export interface Compacting {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * What becomes of it.
     */
    state: CompactState;
}
/**
 * Payload of `chat:close-result`.
 */
export interface Closed {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Whether there was one.
     */
    closed: boolean;
}
/**
 * Payload of `chat:tool-approve-result`.
 */
export interface Approved {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Whether the answer counted.
     */
    accepted: boolean;
}
/**
 * Payload of `chat:tool-input-result`.
 */
export interface InputTaken {
    /**
     * Which question.
     */
    requestId: InputId;
    /**
     * Whether the answer counted.
     */
    accepted: boolean;
}
/**
 * Payload of `chat:tool-output-result`.
 */
export interface OutputTaken {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Whether it counted.
     */
    accepted: boolean;
    /**
     * Whether the very same output came before, and counted then.
     */
    duplicate?: boolean;
}
/**
 * Payload of `chat:tool-extend-result`.
 */
export interface Extended {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Which request for input of it, where one was named.
     */
    requestId?: InputId;
    /**
     * Which host the approval is for, where one was named.
     */
    host?: string;
    /**
     * When the question lapses now, RFC 3339; absent where it never does.
     */
    expiresAt?: string;
}
/**
 * Payload of `chat:budget-approve-result`.
 */
export interface BudgetTaken {
    /**
     * Which question.
     */
    requestId: BudgetId;
    /**
     * Whether the answer counted.
     */
    accepted: boolean;
}
/**
 * Payload of `chat:trust-approve-result`.
 */
export interface TrustTaken {
    /**
     * Which question.
     */
    requestId: TrustId;
    /**
     * Whether the answer counted.
     */
    accepted: boolean;
}
/**
 * Payload of `skill:list-result`.
 */
export interface SkillsListed {
    /**
     * The user's own first; of two of one name the first one counts.
     */
    skills: SkillListed[];
    /**
     * What is no skill though it looks like one, and why.
     */
    problems?: string[];
}
/**
 * A skill in `skill:list-result`.
 */
export interface SkillListed {
    /**
     * Its name.
     */
    name: string;
    /**
     * What it is for.
     */
    description: string;
    /**
     * Its folder: relative to the project, or absolute where it is the user's own.
     */
    folder: string;
    /**
     * The SHA-256 of its `SKILL.md`, in hexadecimal digits.
     */
    sha256: string;
    /**
     * How many bytes that has.
     */
    bytes: number;
    /**
     * Whose it is.
     */
    source: InstructionSource;
    /**
     * Whether it is known already that the model is told of it; else the user is asked first.
     */
    trusted: boolean;
    /**
     * What its author lets it use; it allows nothing here.
     */
    allowedTools?: string;
}
/**
 * Payload of `chat:queued`.
 */
export interface Queued {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The exchange that waits.
     */
    messageId: MessageId;
    /**
     * Its place in the queue, from 1; 0 where it waits no longer and becomes part of the exchange that runs.
     */
    position: number;
    /**
     * The text that it says, up to 64 KiB of it, where no other frame has it: after a restart, in a resync, and after
     * `chat:queue`.
     */
    content?: string;
}
/**
 * Payload of `chat:stream-start`.
 */
export interface StreamStart {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * The provider instance.
     */
    provider: string;
    /**
     * The model.
     */
    model: string;
    /**
     * Files whose words the model is told as the user's.
     */
    instructions?: InstructionFile[];
}
/**
 * Payload of `chat:text-delta` and `chat:thinking-delta`.
 */
export interface Delta {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which turn of it, from 0.
     */
    turn: number;
    /**
     * Counts this exchange's deltas of the sort from 0.
     */
    index: number;
    /**
     * The text; never empty.
     */
    content: string;
}
/**
 * Payload of `chat:tool-input-delta`.
 */
export interface ToolInputDelta {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which turn of it.
     */
    turn: number;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * The tool's name.
     */
    toolName: string;
    /**
     * A piece of JSON text, cut anywhere.
     */
    chunk: string;
}
/**
 * Payload of `chat:tool-resolved`.
 */
export interface ToolResolved {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Which host the question was for; absent where it was whether the call may run.
     */
    host?: string;
    /**
     * How.
     */
    outcome: Outcome;
    /**
     * By whom.
     */
    by: By;
    /**
     * How far the answer reaches, where further than the call.
     */
    remember?: Remember;
    /**
     * Its id then, for `approval:revoke`.
     */
    ruleId?: string;
    /**
     * Whether the input was changed.
     */
    edited?: boolean;
}
/**
 * Payload of `chat:tool-input-resolved`.
 */
export interface ToolInputResolved {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Which question.
     */
    requestId: InputId;
    /**
     * How.
     */
    outcome: InputOutcome;
    /**
     * What the user decided, where somebody answered.
     */
    action?: InputAction;
    /**
     * By whom.
     */
    by: By;
}
/**
 * Payload of `chat:tool-cancelled`: nobody waits for the output of this call any more.
 */
export interface HandedBack {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Why.
     */
    reason: HandedBackReason;
}
/**
 * Payload of `chat:budget-resolved`.
 */
export interface BudgetResolved {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which question.
     */
    requestId: BudgetId;
    /**
     * How.
     */
    outcome: BudgetOutcome;
    /**
     * By whom.
     */
    by: By;
    /**
     * The cap as it is now; absent where there is none any more.
     */
    limitUsd?: number;
}
/**
 * Payload of `chat:trust-resolved`.
 */
export interface TrustResolved {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which question.
     */
    requestId: TrustId;
    /**
     * How.
     */
    outcome: TrustOutcome;
    /**
     * By whom.
     */
    by: By;
}
/**
 * Payload of `chat:instructions`: what the model is told from now on has changed within an exchange.
 */
export interface InstructionsChanged {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * All files that it is told of now.
     */
    files: InstructionFile[];
}
/**
 * Payload of `chat:tool-extended`.
 */
export interface ToolExtended {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Which request for input of it; absent where it is the approval.
     */
    requestId?: InputId;
    /**
     * Which host the approval is for; absent where it is whether the call may run.
     */
    host?: string;
    /**
     * When the question lapses now, RFC 3339.
     */
    expiresAt?: string;
}
/**
 * Payload of `chat:tool-start`.
 */
export interface ToolStart {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which turn of it.
     */
    turn: number;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * The tool's name.
     */
    toolName: string;
    /**
     * The input, as approved.
     */
    input: {
        [k: string]: unknown;
    };
}
/**
 * Payload of `chat:tool-delta`.
 */
export interface ToolDelta {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Some output.
     */
    chunk: string;
    /**
     * Where it came from.
     */
    stream: OutputStream;
}
/**
 * Payload of `tool:background`.
 */
export interface BackgroundChanged {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The command as it is now.
     */
    background: BackgroundCommand;
}
/**
 * Payload of `tool:port-open`.
 */
export interface PortOpened {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The command as it is now; the port is among its `ports`.
     */
    background: BackgroundCommand;
    /**
     * The port on which it began to listen, on the conversation's own loopback.
     */
    port: number;
}
/**
 * Payload of `chat:tool-result`.
 */
export interface ToolOutcome {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * The tool's name.
     */
    toolName: string;
    /**
     * Whether it worked.
     */
    status: ResultStatus;
    /**
     * What the model reads, as text; each picture is named in it.
     */
    result: string;
    /**
     * The same in parts, where it has pictures: they are shown up to 5 MB of base64 together, and named beyond it.
     */
    content?: Part[];
    /**
     * From `tool-start` to the end; 0 for a call that never ran.
     */
    durationMs: number;
    /**
     * Facts, as they apply.
     */
    metadata?: Metadata;
}
/**
 * Facts about a call's outcome, as they apply.
 */
export interface Metadata {
    /**
     * A command's exit code.
     */
    exitCode?: number;
    /**
     * The signal that ended a command.
     */
    signal?: number;
    /**
     * The time limit ended it.
     */
    timedOut?: boolean;
    /**
     * The user, or the end of the exchange, ended it.
     */
    cancelled?: boolean;
    /**
     * It was refused, by the user or by a rule.
     */
    denied?: boolean;
    /**
     * It was refused since it would have had to be asked about and nobody was there.
     */
    unattended?: boolean;
    /**
     * Nobody answered in time.
     */
    expired?: boolean;
    /**
     * Hosts that it did not reach, since the user would have had to be asked and nobody was there, or answered in time.
     */
    unansweredHosts?: string[];
    /**
     * The command in the background that the call started, read or ended.
     */
    background?: BackgroundId;
    /**
     * The output was longer than the cap.
     */
    truncated?: boolean;
    /**
     * Bytes of output altogether.
     */
    totalBytes?: number;
    /**
     * Of these, bytes of standard error.
     */
    stderrBytes?: number;
    /**
     * Bytes of output left out.
     */
    omittedBytes?: number;
    /**
     * How many places of the result show the mask `[redacted]` in place of a secret.
     */
    redacted?: number;
    /**
     * The file, relative to its root.
     */
    path?: string;
    /**
     * A unified diff of what was written.
     */
    diff?: string;
    /**
     * Who answered: a search engine, an MCP server.
     */
    provider?: string;
    /**
     * How many results there are.
     */
    resultCount?: number;
    /**
     * The results as data.
     */
    results?: {
        [k: string]: unknown;
    };
    /**
     * Settings of the project that a command made or changed and that an editor, shell or agent runs.
     */
    settingsChanged?: string[];
    /**
     * Which of the project's files are other than before a command, by itself or by what ran beside it. Absent where
     * none is, and where it only reads.
     */
    changed?: ChangedFiles;
    /**
     * Direct answers of a search engine, and what it has in a box beside the results.
     */
    answers?: string[];
    /**
     * What went wrong though there is a result: an engine that was tried first and failed.
     */
    warnings?: string[];
    /**
     * How the task went that the call began.
     */
    task?: TaskFacts;
    /**
     * The sandbox mode a command ran in.
     */
    sandbox?: string;
    /**
     * Processor time of a command in milliseconds.
     */
    cpuMs?: number;
    /**
     * Largest resident set of a command in bytes.
     */
    maxRssBytes?: number;
}
/**
 * Files of the project that are other than they were.
 */
export interface ChangedFiles {
    /**
     * Up to 200 of them, in the order of their paths. What ignore files leave out is not told, nor are folders such as
     * `node_modules`.
     */
    files: ChangedFile[];
    /**
     * How many more there are.
     */
    more?: number;
    /**
     * Not all files were looked at: the project has too many, or its disk is too slow.
     */
    incomplete?: boolean;
}
/**
 * A file that is other than it was.
 */
export interface ChangedFile {
    /**
     * Its path below the project, `/` between components.
     */
    path: string;
    /**
     * What became of it.
     */
    change: FileChange;
}
/**
 * How a task went.
 */
export interface TaskFacts {
    /**
     * The task: the id of the call that began it.
     */
    taskId: ToolId;
    /**
     * The profile that it had.
     */
    profile: string;
    /**
     * The model that did it.
     */
    model: string;
    /**
     * Turns that ended well.
     */
    turns: number;
    /**
     * Calls of its own.
     */
    toolCalls: number;
    /**
     * Why it ended.
     */
    stopReason: StopReason;
    /**
     * Its tokens.
     */
    usage: Tokens;
    /**
     * What it counted against caps on money, estimates included. Absent where nothing of it has a price.
     */
    spentUsd?: number;
    /**
     * Calls of its own that were refused, since nobody could be asked or answered in time.
     */
    unattendedCalls?: number;
    /**
     * Hosts that its calls did not reach for the same reason, 64 at most.
     */
    unansweredHosts?: string[];
}
/**
 * Tokens; what the provider did not say is left out.
 */
export interface Tokens {
    /**
     * All input tokens, cached ones included.
     */
    inputTokens?: number;
    /**
     * Output tokens, reasoning included.
     */
    outputTokens?: number;
    /**
     * Of the input: read from a cache.
     */
    cacheReadTokens?: number;
    /**
     * Of the input: written to a cache.
     */
    cacheWriteTokens?: number;
}
/**
 * Payload of `chat:usage`.
 */
export interface TurnUsage {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which turn of it.
     */
    turn: number;
    /**
     * All input tokens, cached ones included.
     */
    inputTokens?: number;
    /**
     * Output tokens, reasoning included.
     */
    outputTokens?: number;
    /**
     * Of the input: read from a cache.
     */
    cacheReadTokens?: number;
    /**
     * Of the input: written to a cache.
     */
    cacheWriteTokens?: number;
    /**
     * How full the context is.
     */
    context: Context;
    /**
     * How much is spent of the cap of which least is left, where there is one.
     */
    budget?: BudgetUse;
}
/**
 * How full the model's context is, in tokens.
 */
export interface Context {
    /**
     * What the next request will hold, estimated where the provider has not counted it yet.
     */
    used: number;
    /**
     * The model's window, where known.
     */
    window?: number;
    /**
     * What is left of it.
     */
    remaining?: number;
}
/**
 * How much of a cap is spent.
 */
export interface BudgetUse {
    /**
     * What the cap is for.
     */
    scope: BudgetScope;
    /**
     * What was spent of it.
     */
    spentUsd: number;
    /**
     * The cap.
     */
    limitUsd: number;
}
/**
 * Payload of `chat:compaction`: what the model sees of a conversation is made shorter. What is kept of it, and
 * `chat:history` returns, stays whole.
 */
export interface Compaction {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The exchange in which it happens; absent for `chat:compact`.
     */
    messageId?: MessageId;
    /**
     * The same on all events of this compaction.
     */
    compactionId: CompactionId;
    /**
     * How far it is.
     */
    phase: CompactionPhase;
    /**
     * What is done, and with `done` what was.
     */
    kind: CompactionKind;
    /**
     * Why.
     */
    trigger: CompactionTrigger;
    /**
     * Tokens of the next request before it.
     */
    beforeTokens: number;
    /**
     * The model's window, where known.
     */
    window?: number;
    /**
     * `failed`: why.
     */
    reason?: CompactionFailure;
    /**
     * What the model was asked for it took; absent where none was, and with `started`.
     */
    usage?: Tokens;
    /**
     * What that cost, in US dollars, where known.
     */
    costUsd?: number;
    /**
     * Tokens of the next request after it, estimated.
     */
    afterTokens?: number;
    /**
     * Messages that the model sees no more, but for a summary of them.
     */
    messagesReplaced?: number;
    /**
     * Messages that it sees, some of them perhaps without what was large in them.
     */
    messagesKept?: number;
    /**
     * How long it took, in milliseconds.
     */
    durationMs?: number;
    /**
     * What stands in the place of the messages, up to 32 KiB of it; absent where none was replaced.
     */
    summary?: string;
}
/**
 * Payload of `chat:state`.
 */
export interface State {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange; absent for `idle`.
     */
    messageId?: MessageId;
    /**
     * What it does.
     */
    state: StateName;
    /**
     * Which call, for the states of a call.
     */
    toolId?: ToolId;
    /**
     * `retrying`: which attempt comes next, from 2.
     */
    attempt?: number;
    /**
     * `retrying`: in how many milliseconds.
     */
    delayMs?: number;
    /**
     * `retrying` and `tool-queued`: why.
     */
    reason?: string;
}
/**
 * Payload of `chat:message`.
 */
export interface WholeMessage {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * The message.
     */
    message: WireMessage;
    /**
     * What the exchange came to, with its last message.
     */
    exchange?: StreamEnd;
}
/**
 * Payload of `chat:stream-end`.
 */
export interface StreamEnd {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Why it ended.
     */
    stopReason: StopReason;
    /**
     * Whether what was shown of a turn is not whole: text was cut or, where the provider failed, thinking or a call.
     */
    partial: boolean;
    /**
     * Provider calls that ended well.
     */
    turns: number;
    /**
     * Calls that the model made.
     */
    toolCalls: number;
    /**
     * Sums over the turns.
     */
    usage: Tokens;
    /**
     * What it cost in US dollars, where all of it was counted and has a price.
     */
    costUsd?: number;
    /**
     * What of it counts against caps, where anything has a price: turns that broke off are in it.
     */
    spentUsd?: number;
    /**
     * Whether a part of `spentUsd` is an estimate.
     */
    estimated?: boolean;
    /**
     * From `stream-start` to the end.
     */
    durationMs: number;
}
/**
 * Payload of `chat:steered`.
 */
export interface Steered {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The exchange that it became part of.
     */
    messageId: MessageId;
    /**
     * What the user said.
     */
    content: Content;
}
/**
 * Payload of `chat:turn-discarded`.
 */
export interface TurnDiscarded {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * Which turn; it is run again under the same number.
     */
    turn: number;
    /**
     * Why.
     */
    reason: string;
}
/**
 * Payload of `chat:error`.
 */
export interface ChatError {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange; absent where the send was not admitted.
     */
    messageId?: MessageId;
    /**
     * What went wrong, for programs.
     */
    code: ChatCode;
    /**
     * What went wrong, for people.
     */
    message: string;
    /**
     * What to do.
     */
    hint?: string;
    /**
     * Whether sending again may help.
     */
    retryable: boolean;
    /**
     * The provider's HTTP status.
     */
    httpStatus?: number;
    /**
     * When to try again, in milliseconds from now.
     */
    retryAfterMs?: number;
    /**
     * The provider instance.
     */
    provider?: string;
    /**
     * `budget_exhausted`: what the cap is for.
     */
    scope?: BudgetScope;
    /**
     * `budget_exhausted`, of a day: when the next one begins, RFC 3339.
     */
    resetsAt?: string;
}
/**
 * Payload of `chat:output`: the answer as data.
 */
export interface AnswerOutput {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * Which exchange.
     */
    messageId: MessageId;
    /**
     * An object that fits the schema.
     */
    output: {
        [k: string]: unknown;
    };
}
/**
 * Payload of `approval:list-result`.
 */
export interface ApprovalRules {
    /**
     * Those that may count in this session, in the order in which they were given.
     */
    rules: ApprovalRule[];
}
/**
 * An answer that counts for later calls.
 */
export interface ApprovalRule {
    /**
     * Its id, for `approval:revoke`.
     */
    ruleId: string;
    /**
     * The tool that it is for; absent where it is for hosts or files, whichever tool.
     */
    toolName?: string;
    /**
     * What it is for, in words; secrets are left out.
     */
    matches: string;
    /**
     * Whether that runs without a question; else it is refused without one.
     */
    approved: boolean;
    /**
     * How far it reaches.
     */
    scope: Remember;
    /**
     * With the scope `conversation`: which.
     */
    conversationId?: ConversationId;
    /**
     * With the scope `project`: its folder.
     */
    project?: string;
    /**
     * Why it is refused, in the user's words.
     */
    reason?: string;
    /**
     * The session it was given in.
     */
    sessionId: SessionId;
    /**
     * When it was given, RFC 3339.
     */
    givenAt: string;
    /**
     * Whether it counts: not an approval that reaches further than the operator lets them (`approval.remember`).
     */
    inForce: boolean;
}
/**
 * Payload of `approval:revoke-result`.
 */
export interface ApprovalsRevoked {
    /**
     * Which count no more; none where the scope had none.
     */
    ruleIds: string[];
}
/**
 * Payload of `provider:list-result`.
 */
export interface Providers {
    /**
     * Every instance.
     */
    providers: Provider[];
}
/**
 * A provider instance.
 */
export interface Provider {
    /**
     * Its name in the configuration.
     */
    id: string;
    /**
     * Its kind or preset.
     */
    kind: string;
    /**
     * Its base URL; empty for a script.
     */
    baseUrl: string;
    /**
     * Whether it has what it needs to be asked.
     */
    configured: boolean;
    /**
     * Whether it answers where nothing else is asked for.
     */
    default: boolean;
}
/**
 * Payload of `session:list-result`.
 */
export interface SessionPage {
    /**
     * The sessions, the one that changed last first; with `query` those in whose name the words are, then by the newest
     * message that has them.
     */
    sessions: KeptSession[];
    /**
     * Asks for the next page; absent at the end, and with `query`.
     */
    nextCursor?: string;
}
/**
 * A session that is kept.
 */
export interface KeptSession {
    /**
     * Its id, to resume it by.
     */
    sessionId: SessionId;
    /**
     * Its name: the user's, or the first words that were said.
     */
    title?: string;
    /**
     * The folder it works in.
     */
    project?: string;
    /**
     * When it was begun, RFC 3339.
     */
    createdAt: string;
    /**
     * When something was said last, RFC 3339.
     */
    updatedAt: string;
    /**
     * Whether it was put away.
     */
    archived: boolean;
    /**
     * Its labels, sorted.
     */
    labels?: string[];
    /**
     * How many messages it has.
     */
    messages: number;
    /**
     * Whether it is there now: somebody is on it, or what runs in it goes on.
     */
    live: boolean;
    /**
     * With `query`: the newest message that has the words.
     */
    snippet?: Snippet;
}
/**
 * A piece of a message that has the words that were looked for.
 */
export interface Snippet {
    /**
     * Its conversation.
     */
    conversationId: ConversationId;
    /**
     * Its place there, counted from 0.
     */
    place: number;
    /**
     * The words with what stands around them, up to 160 characters.
     */
    text: string;
}
/**
 * Payload of `session:rename-result`, `session:archive-result` and `session:label-result`.
 */
export interface SessionChanged {
    /**
     * Which session.
     */
    sessionId: SessionId;
}
/**
 * Payload of `session:export-result`.
 */
export interface SessionExported {
    /**
     * Which session.
     */
    sessionId: SessionId;
    /**
     * As what.
     */
    format: SessionFormat;
    /**
     * The text of the range.
     */
    text: string;
    /**
     * First byte of it.
     */
    offset: number;
    /**
     * Where the next range begins; absent at the end.
     */
    nextOffset?: number;
    /**
     * Bytes altogether.
     */
    totalBytes: number;
}
/**
 * Payload of `session:import-result`.
 */
export interface SessionImported {
    /**
     * Which piece was taken.
     */
    part: number;
    /**
     * After the last piece: the new session, to resume it by.
     */
    sessionId?: SessionId;
    /**
     * After the last piece: how many messages it has.
     */
    messages?: number;
}
/**
 * Payload of `session:delete-result`.
 */
export interface SessionDeleted {
    /**
     * Which session there is no more.
     */
    sessionId: SessionId;
}
/**
 * Payload of `session:fork-result`.
 */
export interface SessionForked {
    /**
     * The new session, to resume it by.
     */
    sessionId: SessionId;
}
/**
 * Payload of `provider:configure-result`.
 */
export interface ProviderConfigured {
    /**
     * Which instance.
     */
    provider: string;
    /**
     * Whether it has what it needs to be asked.
     */
    configured: boolean;
}
/**
 * Payload of `provider:validate-result`.
 */
export interface ProviderValidated {
    /**
     * Which instance.
     */
    provider: string;
    /**
     * Whether it accepted the key. It says nothing about billing.
     */
    ok: boolean;
    /**
     * What went wrong, for programs.
     */
    code?: ChatCode;
    /**
     * What went wrong, for people.
     */
    message?: string;
}
/**
 * Payload of `search:configure-result`.
 */
export interface SearchConfigured {
    /**
     * Where SearXNG is; absent for none.
     */
    searxngUrl?: string;
    /**
     * Whether there is a key of the Brave Search API.
     */
    brave: boolean;
}
/**
 * Payload of `workflow:list-result`.
 */
export interface Workflows {
    /**
     * Every workflow, in the order of the names.
     */
    workflows: WorkflowInfo[];
}
/**
 * What there is to know of a workflow.
 */
export interface WorkflowInfo {
    /**
     * Its name.
     */
    name: string;
    /**
     * Whether a client put it there; else it is the operator's.
     */
    put?: boolean;
    /**
     * How much is done without asking.
     */
    trustLevel?: TrustLevel;
    /**
     * Provider instance.
     */
    provider?: string;
    /**
     * Model.
     */
    model?: string;
    /**
     * Limits of an exchange.
     */
    limits: Limits;
    /**
     * Names of the tools that it offers here.
     */
    tools: string[];
}
/**
 * Payload of `config:get-result`.
 */
export interface ConfigValues {
    /**
     * Every value, in the order of the keys.
     */
    values: ConfigValue[];
}
/**
 * A value of the configuration that is in force.
 */
export interface ConfigValue {
    /**
     * The key, with dots between its parts.
     */
    key: string;
    /**
     * The value; `"***"` for a secret, null where the key came later and waits for a restart.
     */
    value: {
        [k: string]: unknown;
    };
    /**
     * Where it comes from, in words: a file, a variable of the environment, a flag, `search:configure`, or `default`.
     */
    source: string;
    /**
     * Whether a change of it counts without a restart (`config:reload`).
     */
    live: boolean;
    /**
     * What was read last, where that is another value, which waits for a restart; null where the key is gone.
     */
    pending?: {
        [k: string]: unknown;
    };
}
/**
 * Payload of `config:reload-result`.
 */
export interface ConfigReloaded {
    /**
     * Keys with another value, which counts from now on.
     */
    changed: string[];
    /**
     * Keys with another value that counts when the daemon is started anew.
     */
    restart?: string[];
    /**
     * What is valid but probably not meant.
     */
    warnings?: string[];
}
/**
 * Payload of `model:list-result`.
 */
export interface Models {
    /**
     * Every model.
     */
    models: Model[];
}
/**
 * What is known of one model. What nobody says is left out.
 */
export interface Model {
    /**
     * The id to ask for it by.
     */
    id: string;
    /**
     * The provider instance that has it.
     */
    provider: string;
    /**
     * A name for people.
     */
    displayName: string;
    /**
     * Input and output tokens together.
     */
    contextWindow?: number;
    /**
     * Most tokens of one answer.
     */
    maxOutputTokens?: number;
    /**
     * Whether it can call tools; true where nobody says otherwise.
     */
    supportsTools: boolean;
    /**
     * Whether it can think.
     */
    supportsThinking?: boolean;
    /**
     * Whether it can see images.
     */
    supportsVision?: boolean;
    /**
     * What it costs.
     */
    pricing?: Pricing;
}
/**
 * Prices in US dollars per million tokens.
 */
export interface Pricing {
    /**
     * Input that no cache had.
     */
    input: number;
    /**
     * Output, reasoning included.
     */
    output: number;
    /**
     * Input read from a cache.
     */
    cacheRead?: number;
    /**
     * Input written to a cache for minutes.
     */
    cacheWrite?: number;
    /**
     * Input written to a cache for an hour.
     */
    cacheWrite1h?: number;
    /**
     * What a turn with a long prompt costs instead.
     */
    long?: LongPricing;
}
/**
 * Prices of turns with long prompts, in US dollars per million tokens: for all of the turn's tokens.
 */
export interface LongPricing {
    /**
     * Tokens of input, cached ones included, that a prompt must exceed.
     */
    above: number;
    /**
     * Input that no cache had.
     */
    input: number;
    /**
     * Output, reasoning included.
     */
    output: number;
    /**
     * Input read from a cache.
     */
    cacheRead?: number;
    /**
     * Input written to a cache for minutes.
     */
    cacheWrite?: number;
    /**
     * Input written to a cache for an hour.
     */
    cacheWrite1h?: number;
}
/**
 * Payload of `tool:list-result`.
 */
export interface Tools {
    /**
     * Every tool in scope.
     */
    tools: ToolSpec[];
}
/**
 * What a tool is, as the model and the client get it.
 */
export interface ToolSpec {
    /**
     * Unique name: `^[A-Za-z0-9_-]{1,64}$`.
     */
    name: string;
    /**
     * What it does, for the model.
     */
    description: string;
    /**
     * JSON schema of its input, always of type `object`.
     */
    inputSchema: {
        [k: string]: unknown;
    };
    /**
     * What sort of tool it is.
     */
    category: ToolCategory;
    /**
     * The least danger any call of it has; one call may be worse.
     */
    dangerLevel: DangerLevel;
    /**
     * Where it comes from: `core`, `custom`, `client` or `mcp:SERVER`.
     */
    origin: string;
}
/**
 * Payload of `tool:register-result`.
 */
export interface ToolsRegistered {
    /**
     * What became of each, in the order of the request. The model is offered it with the next turn.
     */
    tools: RegisteredTool[];
    /**
     * Names of those that were removed, as the model knew them.
     */
    removed: string[];
}
/**
 * What became of a tool that was registered.
 */
export interface RegisteredTool {
    /**
     * The name by which the model calls it.
     */
    name: string;
    /**
     * Whether it is another one than before.
     */
    state: RegistrationState;
    /**
     * How long a call may wait for its output.
     */
    timeoutMs: number;
}
/**
 * Payload of `tool:unregister-result`.
 */
export interface ToolsUnregistered {
    /**
     * Names of those that were removed, as the model knew them. Calls that were handed out stay open.
     */
    removed: string[];
}
/**
 * Payload of `tool:execute-result`: what becomes of the call. What it comes to is told by its events.
 */
export interface Executing {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The exchange that the call is all of.
     */
    messageId: MessageId;
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Whether it runs or waits.
     */
    state: SendState;
    /**
     * Its place in the queue, from 1.
     */
    position?: number;
    /**
     * Whether a request with this `id` was answered before.
     */
    duplicate?: boolean;
}
/**
 * Payload of `tool:expose-result`.
 */
export interface Exposed {
    /**
     * Which conversation.
     */
    conversationId: ConversationId;
    /**
     * The port on its own loopback.
     */
    port: number;
    /**
     * Where this machine's loopback leads to it; absent where nothing does any more.
     */
    url?: string;
}
/**
 * Payload of `tool:cancel-result`.
 */
export interface ToolCancelled {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Whether it was still open.
     */
    cancelled: boolean;
}
/**
 * What is known of one tool call.
 */
export interface ExecutionRecord {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Which session's, where records of all were asked for.
     */
    sessionId?: SessionId;
    /**
     * Whose.
     */
    conversationId: ConversationId;
    /**
     * The provider instance whose model made it.
     */
    provider: string;
    /**
     * The model that made it.
     */
    model: string;
    /**
     * The provider's own id of the call.
     */
    providerCallId?: string;
    /**
     * The tool's name.
     */
    toolName: string;
    /**
     * The input; as approved, where it was asked. After a restart of the daemon, and of other sessions, the long texts of
     * one of more than 16 KiB are cut.
     */
    input: {
        [k: string]: unknown;
    };
    /**
     * Bytes of the input as JSON.
     */
    inputBytes: number;
    /**
     * The commands that it runs, each once and eight at most: a program, with its subcommand where it has such
     * (`cargo test`), never its arguments.
     */
    commands?: string[];
    /**
     * What sort of tool it is.
     */
    category: ToolCategory;
    /**
     * How much harm it may do.
     */
    danger: Danger;
    /**
     * Whether and how the user was asked.
     */
    approval: Approval;
    /**
     * How it stands.
     */
    status: ExecutionStatus;
    /**
     * A command's exit code.
     */
    exitCode?: number;
    /**
     * Bytes of standard output, or of the result where there is no command.
     */
    stdoutBytes: number;
    /**
     * Bytes of standard error.
     */
    stderrBytes: number;
    /**
     * Whether the model got less than all.
     */
    truncated: boolean;
    /**
     * How long it ran.
     */
    durationMs: number;
    /**
     * How long it waited for other calls.
     */
    queuedMs: number;
    /**
     * The sandbox mode that it ran in.
     */
    sandbox?: string;
    /**
     * What it used.
     */
    resources?: Resources;
    /**
     * The command that it started in the background, which may go on after the call was settled.
     */
    background?: BackgroundCommand;
    /**
     * When the model had made it, RFC 3339.
     */
    startedAt: string;
}
/**
 * Whether and how the user was asked.
 */
export interface Approval {
    /**
     * Whether the user was asked.
     */
    asked: boolean;
    /**
     * How the question was settled.
     */
    outcome?: Outcome;
    /**
     * How long the user took.
     */
    waitedMs: number;
}
/**
 * What a command used.
 */
export interface Resources {
    /**
     * Processor time in milliseconds.
     */
    cpuMs: number;
    /**
     * Largest resident set in bytes.
     */
    maxRssBytes: number;
}
/**
 * Payload of `tool:output-result`.
 */
export interface OutputRange {
    /**
     * Which call.
     */
    toolId: ToolId;
    /**
     * Where the output came from.
     */
    stream: OutputStream;
    /**
     * The text of the range; bytes that are no UTF-8 are replaced.
     */
    text: string;
    /**
     * First byte of it.
     */
    offset: number;
    /**
     * Where the next range begins; absent at the end.
     */
    nextOffset?: number;
    /**
     * Bytes of output altogether.
     */
    totalBytes: number;
}
/**
 * Payload of `tool:history-result`.
 */
export interface Executions {
    /**
     * Records, newest first.
     */
    executions: ExecutionRecord[];
    /**
     * Where the next page begins; absent at the end.
     */
    nextCursor?: string;
}
/**
 * Payload of `tool:metrics-result`.
 */
export interface ToolMetrics {
    /**
     * Sums by tool, by name.
     */
    tools: Sums[];
    /**
     * Sums by provider instance, by name.
     */
    providers: Sums[];
    /**
     * Sums by day (UTC) on which the model made the calls, such as `2026-11-20`, the first one first.
     */
    days: Sums[];
    /**
     * Sums by command, those with the most calls first, 50 at most. A call with several counts for each of them, with all
     * that it took.
     */
    commands: Sums[];
    /**
     * Calls that run now.
     */
    running: number;
    /**
     * Calls that wait now.
     */
    queued: number;
}
/**
 * Counts of settled calls, and what they took.
 */
export interface Sums {
    /**
     * The tool's, the provider's or the command's name, or the day.
     */
    name: string;
    /**
     * Settled calls.
     */
    count: number;
    /**
     * Those that failed.
     */
    failed: number;
    /**
     * Those that were refused.
     */
    denied: number;
    /**
     * Those that were cancelled.
     */
    cancelled: number;
    /**
     * `failed` by `count`, 0 to 1.
     */
    failureRate: number;
    /**
     * Mean run time of those that ran.
     */
    meanDurationMs: number;
    /**
     * Longest run time.
     */
    maxDurationMs: number;
    /**
     * Processor time of commands, in milliseconds.
     */
    cpuMs: number;
    /**
     * Largest resident set of a command, in bytes.
     */
    maxRssBytes: number;
    /**
     * Bytes of the inputs as JSON.
     */
    inputBytes: number;
    /**
     * Bytes of the outputs.
     */
    outputBytes: number;
}
/**
 * Payload of `tool:export-result`: a piece of the text.
 */
export interface Export {
    /**
     * How it is written.
     */
    format: ExportFormat;
    /**
     * Whole lines; the pieces after each other are the text. CSV begins with its line of names.
     */
    text: string;
    /**
     * How many records are in it.
     */
    records: number;
    /**
     * Where the next piece begins; absent at the end.
     */
    nextCursor?: string;
}
/**
 * Payload of `usage:report-result`.
 */
export interface UsageReported {
    /**
     * From when on, RFC 3339.
     */
    since: string;
    /**
     * Until when, RFC 3339.
     */
    until: string;
    /**
     * By what they are summed.
     */
    groupBy: GroupBy;
    /**
     * The sums.
     */
    rows: UsageRow[];
    /**
     * Whether there are more than are listed.
     */
    truncated?: boolean;
}
/**
 * What requests to models come to.
 */
export interface UsageRow {
    /**
     * What they have in common; empty for conversations and sessions that are deleted or were not kept.
     */
    key: string;
    /**
     * Of a conversation: its session.
     */
    sessionId?: string;
    /**
     * How many.
     */
    requests: number;
    /**
     * All input tokens, cached ones included.
     */
    inputTokens: number;
    /**
     * Output tokens.
     */
    outputTokens: number;
    /**
     * Of the input: read from a cache.
     */
    cacheReadTokens: number;
    /**
     * Of the input: written to a cache.
     */
    cacheWriteTokens: number;
    /**
     * What those cost whose model has a price.
     */
    spentUsd: number;
    /**
     * How many have none.
     */
    unpriced?: number;
    /**
     * Of how many a part is estimated.
     */
    estimated?: number;
}
/**
 * Payload of `files:changes-result`.
 */
export interface FileChanges {
    /**
     * The changes, the newest first.
     */
    changes: FilesChanged[];
    /**
     * Asks for the next page; absent at the end.
     */
    nextCursor?: string;
}
/**
 * What one call changed, or the user put back.
 */
export interface FilesChanged {
    /**
     * In which conversation.
     */
    conversationId: ConversationId;
    /**
     * The exchange, or the id of what the user put back.
     */
    messageId: MessageId;
    /**
     * The call; absent where the user put a file back.
     */
    toolId?: ToolId;
    /**
     * When, RFC 3339.
     */
    at: string;
    /**
     * The folder that the files are below, an absolute path; absent for those of a command, which are below the project.
     */
    root?: string;
    /**
     * Up to 200 of them, in the order of their paths. What ignore files leave out is not told, nor are folders such as
     * `node_modules`.
     */
    files: ChangedFile[];
    /**
     * How many more there are.
     */
    more?: number;
    /**
     * Not all files were looked at: the project has too many, or its disk is too slow.
     */
    incomplete?: boolean;
    /**
     * A unified diff, without secrets; absent where one of the two is no text, and for those of a command.
     */
    diff?: string;
    /**
     * Why `files:revert` leaves it, whatever the file is by now; absent where it may put it back.
     */
    reason?: NotReverted;
}
/**
 * Payload of `files:revert-result`.
 */
export interface FilesReverted {
    /**
     * Undoes this, as `messageId` of another `files:revert`; absent where nothing was put back.
     */
    messageId?: MessageId;
    /**
     * What became of each file.
     */
    files: FileReverted[];
    /**
     * How many more files were left that commands changed.
     */
    more?: number;
}
/**
 * What became of a file.
 */
export interface FileReverted {
    /**
     * Its path below `root`, or below the project.
     */
    path: string;
    /**
     * The folder that it is below, an absolute path; absent for those of a command.
     */
    root?: string;
    /**
     * Whether it was put back.
     */
    outcome: RevertOutcome;
    /**
     * Why it was left, or not put back further.
     */
    reason?: NotReverted;
    /**
     * The same for people.
     */
    message?: string;
}
/**
 * Payload of `mcp:list-result`.
 */
export interface McpServers {
    /**
     * Every server.
     */
    servers: McpServer[];
}
/**
 * An MCP server.
 */
export interface McpServer {
    /**
     * Its name.
     */
    name: string;
    /**
     * How it is.
     */
    state: McpState;
    /**
     * Names of its tools, as the model sees them.
     */
    tools: string[];
    /**
     * URIs of its resources.
     */
    resources: string[];
    /**
     * Names of its prompts.
     */
    prompts: string[];
    /**
     * What went wrong, with the end of its standard error.
     */
    error?: string;
}
/**
 * Payload of `mcp:auth-required`: to be shown with `host`, and the address opened only where the user says so.
 */
export interface McpAuthRequired {
    /**
     * The MCP server.
     */
    server: string;
    /**
     * The page to open in a browser. It is `https`, or `http` on the daemon's own machine; empty for a socket whose token does
     * not let it drive.
     */
    url: string;
    /**
     * The host of that page, with its port where that is unusual: where the user is about to sign in.
     */
    host: string;
    /**
     * The rights that are asked for, as the server names them.
     */
    scopes: string[];
    /**
     * Whether somebody is signed in already and the server wants more rights.
     */
    more?: boolean;
    /**
     * The host of the sign-in before, where it was another one: the server names another authorization server now.
     */
    wasAt?: string;
    /**
     * When the sign-in is over, RFC 3339.
     */
    expiresAt: string;
}
/**
 * Payload of `mcp:auth-result`.
 */
export interface McpAuthState {
    /**
     * Which server.
     */
    server: string;
    /**
     * Whether somebody is signed in now.
     */
    signedIn: boolean;
    /**
     * Where to sign in, as in `mcp:auth-required`; absent where that is done.
     */
    asked?: McpAuthRequired;
}
/**
 * Payload of `mcp:list-resources-result`: a page of both lists, resources first.
 */
export interface McpResources {
    /**
     * Which server.
     */
    server: string;
    /**
     * What can be read.
     */
    resources: McpResource[];
    /**
     * What addresses can be made of.
     */
    templates: McpResourceTemplate[];
    /**
     * Whether the server tells when a resource changes (`mcp:subscribe`).
     */
    canSubscribe: boolean;
    /**
     * Where the next page begins; absent at the end.
     */
    nextCursor?: string;
}
/**
 * A resource of an MCP server.
 */
export interface McpResource {
    /**
     * Its address, for `mcp:read-resource`.
     */
    uri: string;
    /**
     * Its name for programs.
     */
    name: string;
    /**
     * Its name for people.
     */
    title?: string;
    /**
     * What it is.
     */
    description?: string;
    /**
     * Its media type.
     */
    mimeType?: string;
    /**
     * Its size in bytes.
     */
    size?: number;
}
/**
 * A template of addresses of resources.
 */
export interface McpResourceTemplate {
    /**
     * The template, as RFC 6570 has it.
     */
    uriTemplate: string;
    /**
     * Its name for programs.
     */
    name: string;
    /**
     * Its name for people.
     */
    title?: string;
    /**
     * What it is for.
     */
    description?: string;
    /**
     * The media type of what it leads to.
     */
    mimeType?: string;
}
/**
 * Payload of `mcp:list-prompts-result`: a page.
 */
export interface McpPrompts {
    /**
     * The prompts.
     */
    prompts: McpPrompt[];
    /**
     * Where the next page begins; absent at the end.
     */
    nextCursor?: string;
}
/**
 * A prompt of an MCP server.
 */
export interface McpPrompt {
    /**
     * Which server.
     */
    server: string;
    /**
     * Its name for programs.
     */
    name: string;
    /**
     * What a user types for it, behind a slash: `SERVER:PROMPT`, without spaces.
     */
    command: string;
    /**
     * Its name for people.
     */
    title?: string;
    /**
     * What it is for.
     */
    description?: string;
    /**
     * What it takes, in the order of a command line.
     */
    arguments?: McpPromptArgument[];
}
/**
 * What a prompt takes.
 */
export interface McpPromptArgument {
    /**
     * Its name.
     */
    name: string;
    /**
     * What it is.
     */
    description?: string;
    /**
     * Whether it has to be given.
     */
    required: boolean;
}
/**
 * Payload of `mcp:use-prompt-result`.
 */
export interface McpPromptContent {
    /**
     * Which server.
     */
    server: string;
    /**
     * Which prompt.
     */
    name: string;
    /**
     * What it says, to be sent as `content` of `chat:send`.
     */
    content: Part[];
}
/**
 * Payload of `mcp:changed`: lists of a server are others than before.
 */
export interface McpChanged {
    /**
     * Which server.
     */
    server: string;
    /**
     * Which lists.
     */
    lists: McpListName[];
}
/**
 * Payload of `mcp:log`: a line of a server's log.
 */
export interface McpLog {
    /**
     * Which server said it.
     */
    server: string;
    /**
     * How bad the server calls it.
     */
    level: McpLogLevel;
    /**
     * Which part of the server said it.
     */
    logger?: string;
    /**
     * What it said: text, or JSON of what is no text; cut at 4 KiB.
     */
    text: string;
    /**
     * How many lines before this one came too fast and were left out; absent where none were.
     */
    dropped?: number;
}
