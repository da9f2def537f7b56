import type { Client } from "./client.js";
import type { ClientTool as Registration, ToolsRegistered } from "./protocol.js";
/** What a tool is given besides its input. */
export interface ToolContext {
    toolId: string;
    conversationId: string;
    /** Aborted when nobody waits for the output any more: cancelled, too late, or the session is gone. */
    signal: AbortSignal;
    /** Shows a line of progress, and gives the call more time. */
    progress(line: string): void;
}
/** A tool that this program runs. */
export interface Tool {
    /** What it does, for the model. */
    description: string;
    /** A JSON schema of an object; or a schema of a library that makes one: zod's, or any that has Standard JSON Schema. */
    inputSchema: object;
    /**
     * Does it. What it returns is the output: a text, an array of parts, or any value, which the model reads as JSON;
     * `{ content, structured?, isError? }` says all of it. What it throws is an output too, as an error.
     */
    run(input: any, context: ToolContext): unknown;
    /** Whether it changes nothing. */
    readOnly?: boolean;
    /** Whether the user is asked before: as the trust level says, `always`, or `never`, which the operator has to allow. */
    approval?: Registration["approval"];
    /** How long a call may take, in milliseconds. */
    timeoutMs?: number;
    /** Whether a person is part of it. */
    interactive?: boolean;
    /** Whether it may be run again for the same call, after this page was loaded anew. */
    idempotent?: boolean;
}
/** What the client has for the tools: a few of its own members. */
type Host = Pick<Client, "on" | "request" | "isReplaying" | "role">;
export declare class Tools {
    #private;
    /** `isStranger`: the session was begun before this program was. */
    constructor(host: Host, isStranger: boolean);
    /** Has these tools, and no others, be this program's. One that does not drive registers them when it does. */
    set(tools: Record<string, Tool>): Promise<ToolsRegistered>;
}
export {};
