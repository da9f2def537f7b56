// Tools that this program runs for the model: registered on each connection, run once for each call, answered once.
// Of several sockets on a session the one that drives runs them.
//
// A call is run again only where its author says that this does no harm (`idempotent`). One of which nobody knows whether
// it ran, since the page was loaded anew, is answered with just that.

import type { Client } from "./client.js";
import type { ClientOutput, ClientTool as Registration, Content, HandedOut, ToolsRegistered } from "./protocol.js";

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

/** Most bytes of a structured output; a larger one goes as a text. */
const MOST_STRUCTURED = 60_000;
const UNKNOWN = "the page was loaded anew while this call was open; whether the action happened is not known";

export class Tools {
  #host: Host;
  #tools: Record<string, Tool> = {};
  /** Calls that run here, or whose output is on its way. */
  #running = new Map<string, AbortController>();
  /** Calls that were told of while missed events came in: some have ended since. */
  #held = new Map<string, HandedOut>();
  /** Whether calls that come now may have been begun by a page before this one. */
  #isStranger: boolean;
  #registering = false;
  /** Whether calls are this program's: it is alone on the session, or drives it. */
  #drives: boolean;

  /** `isStranger`: the session was begun before this program was. */
  constructor(host: Host, isStranger: boolean) {
    this.#host = host;
    this.#isStranger = isStranger;
    this.#drives = host.role === undefined || host.role === "driver";
    host.on("session:ready", () => this.#again());
    host.on("session:roles", ({ role }) => {
      if (role === "driver") this.#drive();
      else if (role !== undefined) {
        this.#drives = false;
        this.#lose();
      }
    });
    host.on("chat:tool-call", (call) => {
      if (!this.#drives || this.#running.has(call.toolId)) return;
      if (host.isReplaying) this.#held.set(call.toolId, call);
      else this.#run(call);
    });
    host.on("chat:tool-cancelled", ({ toolId }) => this.#drop(toolId));
    host.on("chat:tool-result", ({ toolId }) => this.#drop(toolId));
    host.on("caught-up", () => void this.#caughtUp());
    host.on("session-lost", () => this.#lose());
    host.on("status", (status) => {
      if (status.name === "closed") this.#lose();
    });
  }

  /** Has these tools, and no others, be this program's. One that does not drive registers them when it does. */
  set(tools: Record<string, Tool>): Promise<ToolsRegistered> {
    this.#tools = { ...tools };
    if (!this.#drives) return Promise.resolve({ tools: [], removed: [] });
    const registered = this.#register();
    // What came before there were tools.
    if (this.#isStranger && !this.#host.isReplaying) void this.#caughtUp();
    return registered;
  }

  async #register(): Promise<ToolsRegistered> {
    const tools = Object.entries(this.#tools).map(([name, tool]) => registration(name, tool));
    this.#registering = true;
    try {
      return await this.#host.request("tool:register", { tools, replace: true });
    } finally {
      this.#registering = false;
    }
  }

  /** Takes over from another program: nobody knows how far it came with the calls that are open. */
  #drive(): void {
    if (this.#drives) return;
    this.#drives = true;
    this.#isStranger = true;
    this.#again();
    if (!this.#host.isReplaying) void this.#caughtUp();
  }

  #again(): void {
    // One that has no answer yet is sent again by itself.
    if (this.#registering || !this.#drives) return;
    // Whoever set the tools was told of what is wrong with them.
    this.#register().catch(() => {});
  }

  async #caughtUp(): Promise<void> {
    if (!this.#drives) return;
    const held = [...this.#held.values()];
    this.#held.clear();
    const isStranger = this.#isStranger;
    this.#isStranger = false;
    for (const call of held) this.#take(call, isStranger);
    if (!isStranger) return;
    // Those that were told of before the first event that came.
    const state = await this.#host.request("session:state", {}).catch(() => undefined);
    for (const call of state?.clientCalls ?? []) this.#take(call, true);
  }

  #take(call: HandedOut, isStranger: boolean): void {
    if (this.#running.has(call.toolId)) return;
    const mayRun = !isStranger || this.#tools[call.name]?.idempotent === true;
    if (mayRun) this.#run(call);
    else if (call.name in this.#tools) this.#answer({ toolId: call.toolId, content: UNKNOWN, isError: true });
  }

  #run(call: HandedOut): void {
    const tool = this.#tools[call.name];
    // Another program's, or one that was taken away: whoever has it answers.
    if (!tool) return;
    const { toolId, conversationId } = call;
    const controller = new AbortController();
    this.#running.set(toolId, controller);
    const { signal } = controller;
    const progress = (line: string) => {
      if (!signal.aborted) this.#host.request("chat:tool-output", { toolId, chunk: line }).catch(() => {});
    };
    const work = async () => tool.run(call.input, { toolId, conversationId, signal, progress });
    work().then(
      (value) => signal.aborted || this.#answer({ toolId, ...output(value) }),
      (error) => signal.aborted || this.#answer({ toolId, content: messageOf(error), isError: true }),
    );
  }

  /** Sends an output; over a socket that drops it is sent again under the same id, and counts once. */
  #answer(payload: ClientOutput): void {
    const failed = (error: unknown) => {
      // The daemon has said what does not fit, and the call is open still.
      const isOurs = (error as { code?: string }).code === "invalid_payload" && payload.isError !== true;
      if (isOurs) this.#answer({ toolId: payload.toolId, content: messageOf(error), isError: true });
    };
    this.#host.request("chat:tool-output", payload).catch(failed);
  }

  #drop(toolId: string): void {
    this.#held.delete(toolId);
    this.#running.get(toolId)?.abort();
    this.#running.delete(toolId);
  }

  #lose(): void {
    for (const toolId of [...this.#running.keys()]) this.#drop(toolId);
    this.#held.clear();
    // Its answer will not come: on the next session the tools are registered anew.
    this.#registering = false;
  }
}

function registration(name: string, tool: Tool): Registration {
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
function schemaOf(schema: any): Record<string, unknown> {
  const standard = schema["~standard"]?.jsonSchema?.input;
  if (typeof standard === "function") return standard({ target: "draft-2020-12" });
  if (typeof schema.toJSONSchema === "function") return schema.toJSONSchema();
  return schema;
}

function output(value: any): Omit<ClientOutput, "toolId"> {
  if (value === undefined || value === null) return { content: "done" };
  if (typeof value === "string") return { content: value === "" ? "done" : value };
  const isParts = Array.isArray(value) && value.length > 0 && value.every((it) => it?.type === "text" || it?.type === "image");
  if (isParts) return { content: value as Content };
  if (typeof value === "object" && "content" in value) {
    const { content, structured, isError } = value;
    return { content, ...(structured !== undefined && { structured }), ...(isError === true && { isError }) };
  }
  const json = JSON.stringify(value);
  return json.length > MOST_STRUCTURED ? { content: json } : { structured: value };
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)) || "the tool failed";
}
