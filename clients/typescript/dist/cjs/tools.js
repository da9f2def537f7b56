"use strict";
// Tools that this program runs for the model: registered on each connection, run once for each call, answered once.
// Of several sockets on a session the one that drives runs them.
//
// A call is run again only where its author says that this does no harm (`idempotent`). One of which nobody knows whether
// it ran, since the page was loaded anew, is answered with just that.
Object.defineProperty(exports, "__esModule", { value: true });
exports.Tools = void 0;
/** Most bytes of a structured output; a larger one goes as a text. */
const MOST_STRUCTURED = 60_000;
const UNKNOWN = "the page was loaded anew while this call was open; whether the action happened is not known";
class Tools {
    #host;
    #tools = {};
    /** Calls that run here, or whose output is on its way. */
    #running = new Map();
    /** Calls that were told of while missed events came in: some have ended since. */
    #held = new Map();
    /** Whether calls that come now may have been begun by a page before this one. */
    #isStranger;
    #registering = false;
    /** Whether calls are this program's: it is alone on the session, or drives it. */
    #drives;
    /** `isStranger`: the session was begun before this program was. */
    constructor(host, isStranger) {
        this.#host = host;
        this.#isStranger = isStranger;
        this.#drives = host.role === undefined || host.role === "driver";
        host.on("session:ready", () => this.#again());
        host.on("session:roles", ({ role }) => {
            if (role === "driver")
                this.#drive();
            else if (role !== undefined) {
                this.#drives = false;
                this.#lose();
            }
        });
        host.on("chat:tool-call", (call) => {
            if (!this.#drives || this.#running.has(call.toolId))
                return;
            if (host.isReplaying)
                this.#held.set(call.toolId, call);
            else
                this.#run(call);
        });
        host.on("chat:tool-cancelled", ({ toolId }) => this.#drop(toolId));
        host.on("chat:tool-result", ({ toolId }) => this.#drop(toolId));
        host.on("caught-up", () => void this.#caughtUp());
        host.on("session-lost", () => this.#lose());
        host.on("status", (status) => {
            if (status.name === "closed")
                this.#lose();
        });
    }
    /** Has these tools, and no others, be this program's. One that does not drive registers them when it does. */
    set(tools) {
        this.#tools = { ...tools };
        if (!this.#drives)
            return Promise.resolve({ tools: [], removed: [] });
        const registered = this.#register();
        // What came before there were tools.
        if (this.#isStranger && !this.#host.isReplaying)
            void this.#caughtUp();
        return registered;
    }
    async #register() {
        const tools = Object.entries(this.#tools).map(([name, tool]) => registration(name, tool));
        this.#registering = true;
        try {
            return await this.#host.request("tool:register", { tools, replace: true });
        }
        finally {
            this.#registering = false;
        }
    }
    /** Takes over from another program: nobody knows how far it came with the calls that are open. */
    #drive() {
        if (this.#drives)
            return;
        this.#drives = true;
        this.#isStranger = true;
        this.#again();
        if (!this.#host.isReplaying)
            void this.#caughtUp();
    }
    #again() {
        // One that has no answer yet is sent again by itself.
        if (this.#registering || !this.#drives)
            return;
        // Whoever set the tools was told of what is wrong with them.
        this.#register().catch(() => { });
    }
    async #caughtUp() {
        if (!this.#drives)
            return;
        const held = [...this.#held.values()];
        this.#held.clear();
        const isStranger = this.#isStranger;
        this.#isStranger = false;
        for (const call of held)
            this.#take(call, isStranger);
        if (!isStranger)
            return;
        // Those that were told of before the first event that came.
        const state = await this.#host.request("session:state", {}).catch(() => undefined);
        for (const call of state?.clientCalls ?? [])
            this.#take(call, true);
    }
    #take(call, isStranger) {
        if (this.#running.has(call.toolId))
            return;
        const mayRun = !isStranger || this.#tools[call.name]?.idempotent === true;
        if (mayRun)
            this.#run(call);
        else if (call.name in this.#tools)
            this.#answer({ toolId: call.toolId, content: UNKNOWN, isError: true });
    }
    #run(call) {
        const tool = this.#tools[call.name];
        // Another program's, or one that was taken away: whoever has it answers.
        if (!tool)
            return;
        const { toolId, conversationId } = call;
        const controller = new AbortController();
        this.#running.set(toolId, controller);
        const { signal } = controller;
        const progress = (line) => {
            if (!signal.aborted)
                this.#host.request("chat:tool-output", { toolId, chunk: line }).catch(() => { });
        };
        const work = async () => tool.run(call.input, { toolId, conversationId, signal, progress });
        work().then((value) => signal.aborted || this.#answer({ toolId, ...output(value) }), (error) => signal.aborted || this.#answer({ toolId, content: messageOf(error), isError: true }));
    }
    /** Sends an output; over a socket that drops it is sent again under the same id, and counts once. */
    #answer(payload) {
        const failed = (error) => {
            // The daemon has said what does not fit, and the call is open still.
            const isOurs = error.code === "invalid_payload" && payload.isError !== true;
            if (isOurs)
                this.#answer({ toolId: payload.toolId, content: messageOf(error), isError: true });
        };
        this.#host.request("chat:tool-output", payload).catch(failed);
    }
    #drop(toolId) {
        this.#held.delete(toolId);
        this.#running.get(toolId)?.abort();
        this.#running.delete(toolId);
    }
    #lose() {
        for (const toolId of [...this.#running.keys()])
            this.#drop(toolId);
        this.#held.clear();
        // Its answer will not come: on the next session the tools are registered anew.
        this.#registering = false;
    }
}
exports.Tools = Tools;
function registration(name, tool) {
    const { description, readOnly, approval, timeoutMs, interactive } = tool;
    return {
        name,
        description,
        inputSchema: schemaOf(tool.inputSchema),
        ...(readOnly !== undefined && { readOnly }),
        ...(approval !== undefined && { approval }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(interactive !== undefined && { interactive }),
    };
}
/** Returns the JSON schema of a schema, whichever library made it. */
function schemaOf(schema) {
    const standard = schema["~standard"]?.jsonSchema?.input;
    if (typeof standard === "function")
        return standard({ target: "draft-2020-12" });
    if (typeof schema.toJSONSchema === "function")
        return schema.toJSONSchema();
    return schema;
}
function output(value) {
    if (value === undefined || value === null)
        return { content: "done" };
    if (typeof value === "string")
        return { content: value === "" ? "done" : value };
    const isParts = Array.isArray(value) && value.length > 0 && value.every((it) => it?.type === "text" || it?.type === "image");
    if (isParts)
        return { content: value };
    if (typeof value === "object" && "content" in value) {
        const { content, structured, isError } = value;
        return { content, ...(structured !== undefined && { structured }), ...(isError === true && { isError }) };
    }
    const json = JSON.stringify(value);
    return json.length > MOST_STRUCTURED ? { content: json } : { structured: value };
}
function messageOf(error) {
    return (error instanceof Error ? error.message : String(error)) || "the tool failed";
}
