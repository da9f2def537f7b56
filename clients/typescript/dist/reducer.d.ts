import type { BackgroundCommand, BudgetConfirm, ChatError, Content, Context, History, Part, ServerFrame, StateName, StreamEnd, ToolConfirm, ToolInputRequest, ToolResolved, TrustConfirm } from "./protocol.js";
/** Most characters of a call's live output that are kept; the oldest are dropped. */
export declare const OUTPUT_CHARS: number;
/** Text of the answer. */
export interface TextBlock {
    type: "text";
    turn: number;
    text: string;
}
/** Thinking of the model, for show. */
export interface ThinkingBlock {
    type: "thinking";
    turn: number;
    text: string;
}
/** A call of a tool, from the first piece of its input to its result. */
export interface ToolCallBlock {
    type: "tool_call";
    turn: number;
    toolId: string;
    toolName: string;
    status: "running" | "success" | "error";
    /** What a running call waits for; `done` with its result. */
    phase: "planned" | "awaiting-approval" | "queued" | "executing" | "done";
    /** The input as the model writes it; `input` once it is whole. */
    inputText: string;
    input?: Record<string, unknown>;
    /** The question, where one was asked. */
    confirm?: ToolConfirm;
    /** How the question was settled. */
    resolved?: ToolResolved;
    /** What the call waits for, where it is queued. */
    waitsFor?: string;
    /** Live output, the end of it. */
    output: string;
    /** Characters of live output that were dropped at its beginning. */
    outputDropped: number;
    result?: string;
    /** The result in parts, where it has pictures. */
    content?: Part[];
    durationMs?: number;
    metadata?: Record<string, unknown>;
}
/** What the user said in the middle of an exchange. */
export interface SteeredBlock {
    type: "steered";
    turn: number;
    content: Content;
}
export type Block = TextBlock | ThinkingBlock | ToolCallBlock | SteeredBlock;
/** What one side said: the user's words, or all that came of them. */
export interface Message {
    /** The exchange's id, `m1`; messages of a history have ids of their own, `h1`. */
    id: string;
    role: "user" | "assistant";
    /** Where it begins in the history, counted as `before` of `chat:history`; known of messages of a history alone. */
    place?: number;
    blocks: Block[];
    /** What the user said, where it is more than text: pictures and documents. The text block names them. */
    content?: Content;
    status: "queued" | "streaming" | "done";
    /** Place in the queue, while it waits. */
    position?: number;
    provider?: string;
    model?: string;
    error?: ChatError;
    end?: StreamEnd;
    /** The provider failed and is asked again. */
    retry?: {
        attempt: number;
        delayMs: number;
        reason: string;
    };
}
export interface ConversationView {
    conversationId: string;
    messages: Message[];
    state: StateName;
    /** How full the model's context is. */
    context?: Context;
    /** What its exchanges have cost, where the daemon knows the prices. */
    costUsd: number;
    /** Commands in the background, in the order of their start; those that have ended are among them. */
    background: BackgroundCommand[];
    /** There are older messages than these: `before` of the `chat:history` that asks for them, see `withEarlier`. */
    earlier?: number;
}
/** All that a session shows. */
export interface View {
    conversations: Record<string, ConversationView>;
    /** Questions without an answer, in the order of their coming. */
    approvals: ToolConfirm[];
    /** What servers ask in the middle of calls, in the order of their coming; only with `inputRequests`. */
    inputs: ToolInputRequest[];
    /** Questions whether more may be spent, in the order of their coming. */
    budgets: BudgetConfirm[];
    /** Questions whether files may speak for the user, in the order of their coming; only with `trustQuestions`. */
    trusts: TrustConfirm[];
    /** Whether events were missed that the daemon no longer had; what is shown is what it remembers. */
    gap: boolean;
    /** Whether the histories after a gap come now; one without `replyTo` is the answer to another socket else. */
    isRetold?: true;
}
/** A view of nothing. */
export declare function emptyView(): View;
/** Returns the view after a frame. */
export declare function reduce(view: View, frame: ServerFrame): View;
/** Returns the view after several frames. */
export declare function reduceAll(view: View, frames: Iterable<ServerFrame>): View;
/**
 * Adds what the user said in an exchange, in front of its answer. Frames do not repeat it unless the
 * layer `message` is on; the `messageId` is in the answer to `chat:send`.
 */
export declare function withUserMessage(view: View, conversationId: string, messageId: string, content: Content): View;
/**
 * Draws the newest messages that the daemon remembers in place of those that were replayed; what runs or waits stays as
 * it is. For a session whose events are not all this client's own: they do not repeat what the user said.
 */
export declare function withHistory(view: View, page: History): View;
/** Draws a page of older messages, asked for with `before` of the conversation's `earlier`, above those that are there. */
export declare function withEarlier(view: View, page: History): View;
/** The text of a message's content; a picture is named by its type, a document by its name. */
export declare function textOf(content: Content): string;
/** Which question: that whether a call may run, or one of those for its hosts, which have its id. A `chat:tool-confirm` is one. */
export interface Asked {
    toolId: string;
    host?: string | null;
}
/** Whether both are of one question. */
export declare function isSame(one: Asked, other: Asked): boolean;
