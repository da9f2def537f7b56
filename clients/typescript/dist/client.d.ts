import { type ChatError, type ChatSend, type Commands, type Configure, type Content, type Events, type FilesChanges, type Ready, type Remember, type SocketRole, type ServerFrame, type SessionError, type SessionFormat, type SessionFork, type SessionList, type ToolExecute, type ToolExport } from "./protocol.js";
import type { Asked } from "./reducer.js";
import type { SessionStore } from "./store.js";
import { type Tool } from "./tools.js";
/** What this client needs of a `WebSocket`; the browser's, Node's and `ws`'s have it. */
export interface Socket {
    readonly readyState: number;
    send(text: string): void;
    close(code?: number, reason?: string): void;
    onopen: ((event: any) => void) | null;
    onmessage: ((event: any) => void) | null;
    onclose: ((event: any) => void) | null;
    onerror: ((event: any) => void) | null;
}
export type SocketConstructor = new (url: string, protocols?: string | string[]) => Socket;
export interface ClientOptions {
    /** The `url` of the ready line, e.g. `ws://127.0.0.1:4517/ws`. */
    url: string;
    /** The token of the ready line, or the one given to the daemon. */
    token?: string;
    /** Where there is no global `WebSocket` (Node.js 20): that of a library. */
    WebSocket?: SocketConstructor;
    /** Goes on with a session that was left, e.g. before a page was loaded again. */
    session?: {
        sessionId: string;
        lastSeq: number;
    };
    /** Where the session is kept that is gone on with, where `session` names none, e.g. `webStore()`. */
    store?: SessionStore;
    /**
     * What this socket is for, beside others on the session: `driver`, `approver` or `observer`. Without one it drives, and the
     * socket that drove before is closed.
     */
    role?: SocketRole;
    /** Whether it drives the session also where another socket does, which approves from then on; at the first connection only. */
    takeOver?: boolean;
    /** Whether a dropped socket is connected again; true where absent. */
    reconnect?: boolean;
    /** First and longest pause before connecting again, in milliseconds. */
    pause?: {
        first: number;
        longest: number;
    };
    /** How long a connection may take, in milliseconds. */
    connectMs?: number;
}
export type Status = 
/** Trying to get there; `attempt` counts from 1 since the last time it was. */
{
    name: "connecting";
    attempt: number;
} | {
    name: "open";
}
/** Dropped; tried again in so many milliseconds. */
 | {
    name: "waiting";
    delayMs: number;
    attempt: number;
}
/** Over: by `close`, because another window took the session over, or since it cannot go on. */
 | {
    name: "closed";
    code: number;
    reason: string;
};
/** What can be listened to besides the daemon's events. */
export interface ClientEvents {
    /** Every frame that counts: no duplicates, in order. */
    frame: ServerFrame;
    /** Every frame as it went over the wire, both ways, duplicates too. */
    wire: {
        direction: "in" | "out";
        text: string;
    };
    status: Status;
    /** The session that was resumed is gone; `ready` tells of the new one. Unanswered requests were rejected. */
    "session-lost": Ready;
    /** All that was missed has come, or there was nothing to miss: what comes now is new. */
    "caught-up": Ready;
}
type AnswerTo<K extends string> = `${K}-result` extends keyof Events ? Events[`${K}-result`] : unknown;
/** A request that was answered by an error, or by nothing any more. */
export declare class RequestError extends Error {
    /** The daemon's code; `session_lost` and `closed` are this client's. */
    readonly code: string;
    readonly payload?: SessionError | ChatError | undefined;
    readonly name = "RequestError";
    constructor(
    /** The daemon's code; `session_lost` and `closed` are this client's. */
    code: string, message: string, payload?: SessionError | ChatError | undefined);
}
export declare class Client {
    #private;
    /** The daemon's last `session:ready`. */
    ready: Ready | undefined;
    /** The highest number seen in this session. */
    lastSeq: number;
    /** How the connection stands; listen to `status` for changes. */
    status: Status;
    constructor(options: ClientOptions);
    /** Whether events come in that were missed. */
    get isReplaying(): boolean;
    /** What to resume by, after a page was loaded again. */
    get session(): {
        sessionId: string;
        lastSeq: number;
    } | undefined;
    /**
     * Connects; resolves with the daemon's `session:ready`.
     *
     * Rejects where the first attempt fails. Once it was connected, a dropped socket is connected
     * again by itself, for as long as it takes, until `close`.
     */
    connect(): Promise<Ready>;
    /** Ends the connection; the session lives on for its grace period. */
    close(): void;
    /** Drops the socket and connects again at once, e.g. when a laptop woke up. */
    retryNow(): void;
    /** Calls `listener` for each event of a type, or for one of `ClientEvents`; returns what stops it. */
    on<K extends keyof ClientEvents>(type: K, listener: (value: ClientEvents[K]) => void): () => void;
    on<K extends keyof Events>(type: K, listener: (payload: Events[K], frame: ServerFrame<K>) => void): () => void;
    /** Sends a request; resolves with the payload of its answer, rejects with a `RequestError`. */
    request<K extends keyof Commands>(type: K, payload: Commands[K], id?: string): Promise<AnswerTo<K>>;
    /**
     * Says something. `id` makes it safe to repeat: the daemon runs a send of one id once.
     *
     * Resolves when the daemon has admitted it, with the `messageId` of its exchange.
     */
    send(content: Content, options?: Omit<ChatSend, "content"> & {
        id?: string;
    }): Promise<AnswerTo<"chat:send">>;
    /** Stops what runs in a conversation. */
    cancel(conversationId?: string, queued?: boolean): Promise<AnswerTo<"chat:cancel">>;
    /**
     * Lets a call run, with another input where one is given; or lets it connect to a host. Give it the `chat:tool-confirm`,
     * so that the answer is for that question and no other; an id is for the question whether the call may run.
     */
    approve(question: string | Asked, options?: {
        input?: Record<string, unknown>;
        remember?: Remember;
        folder?: string;
    }): Promise<AnswerTo<"chat:tool-approve">>;
    /** Refuses it; the model reads the reason. With `remember` it is not asked for again. */
    deny(question: string | Asked, reason?: string, options?: {
        remember?: Remember;
        folder?: string;
    }): Promise<AnswerTo<"chat:tool-approve">>;
    /** Lists the answers that count for later calls in this session. */
    approvals(scope?: Remember): Promise<AnswerTo<"approval:list">>;
    /** Has one of them count no more, by its id, or all that reach so far. */
    revoke(which: {
        ruleId: string;
    } | {
        scope: Remember;
        conversationId?: string;
    }): Promise<AnswerTo<"approval:revoke">>;
    /** Gives a server what it asked for in the middle of a call: the fields of a form, nothing for a page. */
    give(requestId: string, content?: Record<string, unknown>): Promise<AnswerTo<"chat:tool-input">>;
    /** Does not give it: says no, or closes the question without a decision. */
    refuse(requestId: string, action?: "decline" | "cancel"): Promise<AnswerTo<"chat:tool-input">>;
    /** Has more be spent: by so many US dollars, without a cap, or by the first of the choices. */
    spendMore(requestId: string, more?: {
        extendUsd?: number;
        unlimited?: boolean;
    }): Promise<AnswerTo<"chat:budget-approve">>;
    /** Has no more be spent: the exchange ends, with `finish` after a last answer. */
    spendNoMore(requestId: string, finish?: boolean): Promise<AnswerTo<"chat:budget-approve">>;
    /** Says whether the model is told files of the project as the user's words. */
    trust(requestId: string, approved: boolean): Promise<AnswerTo<"chat:trust-approve">>;
    /**
     * Gives an open question more time, `requestId` for one that a server asks in the middle of the call. Say so while
     * somebody is at it: every 10 s, or at half of the time that is left where that is sooner.
     */
    extend(question: string | Asked, requestId?: string): Promise<AnswerTo<"chat:tool-extend">>;
    /**
     * Has the model offered tools that this program runs, these and no others, on this connection and on each one after it.
     * Each call is run once: over a socket that drops, its output is sent again, and counts once. Resolves when they are
     * registered, and rejects with what is wrong with them.
     */
    tools(tools: Record<string, Tool>): Promise<AnswerTo<"tool:register">>;
    /**
     * Runs a tool without a model, as a call of this session. Resolves with its `toolId` and `messageId` as soon as it runs or
     * waits; `chat:tool-result` has what it came to. With `inject` the model reads it, with the next message.
     */
    execute(toolName: string, input?: Record<string, unknown>, options?: Omit<ToolExecute, "toolName" | "input"> & {
        id?: string;
    }): Promise<AnswerTo<"tool:execute">>;
    /** Lists what waits in a conversation. */
    queue(conversationId?: string): Promise<AnswerTo<"chat:queue">>;
    /**
     * Changes one that waits: what it says, its place from 1, or that it waits no more (`remove`, or `send`: it becomes part
     * of what runs). Resolves with what waits then.
     */
    changeQueued(messageId: string, change: {
        edit: Content;
    } | {
        move: number;
    } | "remove" | "send", conversationId?: string): Promise<AnswerTo<"chat:queue">>;
    /** Asks how the session stands, in one word; the layer `status` tells it as `session:status-changed`. */
    sessionStatus(): Promise<AnswerTo<"session:status">>;
    /** What this socket may do, where it was given a role; listen to `session:roles` for changes. */
    get role(): SocketRole | undefined;
    /** Has this socket drive the session; the one that drove approves from then on. */
    takeOver(): Promise<AnswerTo<"session:take-over">>;
    /** Sets defaults of this session. */
    configure(values: Configure): Promise<AnswerTo<"session:configure">>;
    /**
     * Lists the sessions that are kept, the one that changed last first; with `query` those in which these words were
     * said. `cursor`, the `nextCursor` of a page, asks for the next one.
     */
    listSessions(wanted?: SessionList): Promise<AnswerTo<"session:list">>;
    /** Gives a session a name of 1 to 200 characters; this one where none is named. */
    renameSession(title: string, sessionId?: string): Promise<AnswerTo<"session:rename">>;
    /** Puts a session away, or with `false` takes it back; this one where none is named. */
    archiveSession(archived?: boolean, sessionId?: string): Promise<AnswerTo<"session:archive">>;
    /** Gives a session labels in the place of those that it has, up to 16; this one where none is named. */
    labelSession(labels: string[], sessionId?: string): Promise<AnswerTo<"session:label">>;
    /** Reads a session as a file, piece by piece; this one where none is named. One file at a time. */
    exportSession(format?: SessionFormat, sessionId?: string): Promise<string>;
    /** Makes a new session of such a file of JSON lines, all of it or nothing. Go on in it with `openSession`. */
    importSession(text: string): Promise<AnswerTo<"session:import">>;
    /** Deletes a session for good, with what runs in it; not this one. */
    deleteSession(sessionId: string): Promise<AnswerTo<"session:delete">>;
    /**
     * Makes a new session of this one, or of the one named: of all that was said, or with `before` of what was said in
     * one conversation before that place. Go on in it with `openSession`.
     */
    forkSession(wanted?: SessionFork): Promise<AnswerTo<"session:fork">>;
    /**
     * Goes on in another session, or in a new one where none is named. Requests without an answer fail with `closed`. What
     * is drawn begins anew with `emptyView()`, before this is called: events of the session that is left come no more, those
     * of the other one come at once, and `withHistory` has what they do not say.
     *
     * Rejects with `session_not_found` where it is not kept. The client is on the session that it had then, or, with a daemon
     * that has no `session_open` among its `features`, on a new one.
     */
    openSession(sessionId?: string): Promise<Ready>;
    /** Lists what calls did to files, newest first, with diffs. */
    fileChanges(wanted?: FilesChanges): Promise<AnswerTo<"files:changes">>;
    /** Undoes what an exchange did to files, or one call, where nobody changed them since; says of each what became of it. */
    revertFiles(which: {
        messageId: string;
    } | {
        toolId: string;
    }): Promise<AnswerTo<"files:revert">>;
    /** Returns what ran as a file, of this session or of all. */
    exportCalls(wanted: ToolExport): Promise<AnswerTo<"tool:export">>;
    /** Returns a page of what is remembered, the newest messages first of all; `before` asks for older ones. */
    history(page?: {
        conversationId?: string;
        limit?: number;
        before?: number;
    }): Promise<AnswerTo<"chat:history">>;
}
export {};
