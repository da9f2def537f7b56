// From frames to what a chat shows: messages of blocks. Pure: no clock, no socket, no page.
//
// `reduce` never changes what it was given, and parts that did not change keep their identity, so
// that a view may compare by `===`. Frames that it does not know leave everything as it is.

import type {
  BackgroundCommand,
  BudgetConfirm,
  ChatError,
  Content,
  Context,
  History,
  Part,
  ServerFrame,
  StateName,
  StreamEnd,
  ToolConfirm,
  ToolInputRequest,
  ToolResolved,
  TrustConfirm,
  WireMessage,
} from "./protocol.js";

/** Most characters of a call's live output that are kept; the oldest are dropped. */
export const OUTPUT_CHARS = 256 * 1024;

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
  retry?: { attempt: number; delayMs: number; reason: string };
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
export function emptyView(): View {
  return { conversations: {}, approvals: [], inputs: [], budgets: [], trusts: [], gap: false };
}

/** Returns the view after a frame. */
export function reduce(view: View, frame: ServerFrame): View {
  const now = after(view, frame);
  if (!now.isRetold || frame.type === "session:error" || frame.type.endsWith("-result")) return now;
  const { isRetold: _, ...rest } = now;
  return rest;
}

function after(view: View, frame: ServerFrame): View {
  switch (frame.type) {
    case "session:error":
      return frame.payload.code === "replay_gap" ? missed(view) : view;
    case "session:state-result":
      return stateOf(view, frame.payload);
    case "chat:history-result":
      return (frame.replyTo === undefined && view.isRetold) || !view.conversations[frame.payload.conversationId]
        ? withConversation(view, frame.payload.conversationId, (it) => paged(it, frame.payload, fromHistory(frame.payload)))
        : view;
    case "chat:close-result": {
      const { [frame.payload.conversationId]: _, ...conversations } = view.conversations;
      return { ...view, conversations };
    }
    case "chat:queued": {
      const { conversationId, messageId, position, content } = frame.payload;
      // It becomes part of the exchange that runs, which `chat:steered` shows.
      if (position === 0) return without(view, conversationId, messageId);
      const queued = message(view, frame.payload, (it) => ({ ...it, status: "queued", position }));
      if (content === undefined) return queued;
      return reworded(withUserMessage(queued, conversationId, messageId, content), conversationId, messageId, content);
    }
    case "chat:stream-start": {
      const { provider, model } = frame.payload;
      return message(continued(view, frame.payload), frame.payload, ({ position: _, ...it }) => ({
        ...it,
        status: "streaming",
        provider,
        model,
      }));
    }
    case "chat:text-delta":
      return delta(view, frame.payload, "text");
    case "chat:thinking-delta":
      return delta(view, frame.payload, "thinking");
    case "chat:tool-input-delta": {
      const { chunk, toolName, turn } = frame.payload;
      return call(view, frame.payload, { toolName, turn }, (it) => ({
        ...it,
        inputText: it.inputText + chunk,
      }));
    }
    case "chat:tool-confirm": {
      const confirm = frame.payload;
      const known = view.approvals.some((open) => isSame(open, confirm));
      const asked = known ? view : { ...view, approvals: [...view.approvals, confirm] };
      return call(asked, confirm, { toolName: confirm.toolName }, (it) => ({
        ...it,
        phase: "awaiting-approval",
        input: confirm.input,
        confirm,
      }));
    }
    case "chat:tool-resolved": {
      const resolved = frame.payload;
      const approvals = view.approvals.filter((open) => !isSame(open, resolved));
      // What is said of a host decides nothing about the call, which runs.
      const isOfCall = resolved.host === undefined;
      const next = isOfCall ? "queued" : "executing";
      return call({ ...view, approvals }, resolved, {}, (it) => ({
        ...it,
        ...(isOfCall && { resolved }),
        phase: it.phase === "awaiting-approval" ? next : it.phase,
      }));
    }
    case "chat:tool-extended":
      return extended(view, frame.payload);
    case "chat:tool-input-request": {
      const request = frame.payload;
      const known = view.inputs.some((open) => open.requestId === request.requestId);
      return known ? view : { ...view, inputs: [...view.inputs, request] };
    }
    case "chat:tool-input-resolved": {
      const { requestId } = frame.payload;
      return { ...view, inputs: view.inputs.filter((open) => open.requestId !== requestId) };
    }
    case "chat:budget-confirm": {
      const confirm = frame.payload;
      const known = view.budgets.some((open) => open.requestId === confirm.requestId);
      return known ? view : { ...view, budgets: [...view.budgets, confirm] };
    }
    case "chat:budget-resolved": {
      const { requestId } = frame.payload;
      return { ...view, budgets: view.budgets.filter((open) => open.requestId !== requestId) };
    }
    case "chat:trust-confirm": {
      const confirm = frame.payload;
      const known = view.trusts.some((open) => open.requestId === confirm.requestId);
      return known ? view : { ...view, trusts: [...view.trusts, confirm] };
    }
    case "chat:trust-resolved": {
      const { requestId } = frame.payload;
      return { ...view, trusts: view.trusts.filter((open) => open.requestId !== requestId) };
    }
    case "chat:tool-start": {
      const { toolName, turn, input } = frame.payload;
      return call(view, frame.payload, { toolName, turn }, ({ waitsFor: _, ...it }) => ({
        ...it,
        input,
        phase: "executing",
      }));
    }
    case "chat:tool-delta": {
      const { chunk } = frame.payload;
      const of = writer(view, frame.payload);
      return of ? call(view, of, {}, (it) => ({ ...it, ...appended(it, chunk) })) : view;
    }
    case "chat:tool-result": {
      const { toolName, status, result, content, durationMs, metadata } = frame.payload;
      return call(view, frame.payload, { toolName }, (it) => ({
        ...it,
        status,
        phase: "done",
        result,
        ...(content && content.length > 0 && { content }),
        durationMs,
        ...(metadata && { metadata: metadata as Record<string, unknown> }),
      }));
    }
    case "tool:port-open":
    case "tool:background": {
      const { conversationId, background } = frame.payload;
      return withConversation(view, conversationId, (it) => {
        const at = it.background.findIndex((other) => other.id === background.id);
        const now = it.background.slice();
        now.splice(at < 0 ? now.length : at, at < 0 ? 0 : 1, background);
        return { ...it, background: now };
      });
    }
    case "chat:usage":
      return withConversation(view, frame.payload.conversationId, (it) => ({
        ...it,
        context: frame.payload.context,
      }));
    case "chat:compaction": {
      const { afterTokens: used } = frame.payload;
      if (used === undefined || used === null) return view;
      return withConversation(view, frame.payload.conversationId, (it) => {
        const window = it.context?.window;
        const left = window === undefined ? {} : { window, remaining: Math.max(0, window - used) };
        return { ...it, context: { used, ...left } };
      });
    }
    case "chat:state":
      return state(view, frame.payload);
    case "chat:message":
      return said(view, frame.payload.conversationId, frame.payload.messageId, frame.payload.message);
    case "chat:steered": {
      const { content } = frame.payload;
      return message(view, frame.payload, (it) => ({
        ...it,
        blocks: [...it.blocks, { type: "steered", turn: it.blocks.at(-1)?.turn ?? 0, content }],
      }));
    }
    case "chat:turn-discarded": {
      const { turn } = frame.payload;
      return message(view, frame.payload, (it) => ({
        ...it,
        blocks: it.blocks.filter((block) => block.turn !== turn || block.type === "steered"),
      }));
    }
    case "chat:error": {
      const error = frame.payload;
      // Without an exchange the send was not admitted; whoever sent it got the error.
      return error.messageId === undefined
        ? view
        : message(view, { ...error, messageId: error.messageId }, (it) => ({ ...it, error }));
    }
    case "chat:stream-end":
      return ended(view, frame.payload);
    default:
      return view;
  }
}

/** Returns the view after several frames. */
export function reduceAll(view: View, frames: Iterable<ServerFrame>): View {
  let now = view;
  for (const frame of frames) now = reduce(now, frame);
  return now;
}

/**
 * Adds what the user said in an exchange, in front of its answer. Frames do not repeat it unless the
 * layer `message` is on; the `messageId` is in the answer to `chat:send`.
 */
export function withUserMessage(
  view: View,
  conversationId: string,
  messageId: string,
  content: Content,
): View {
  return withConversation(view, conversationId, (it) => {
    const has = it.messages.some((other) => other.id === messageId && other.role === "user");
    // After a gap the history has it.
    const last = it.messages.filter((other) => other.role === "user").at(-1);
    const isTold = view.gap && last?.id.startsWith("h") && last.blocks[0]?.type === "text" && last.blocks[0].text === textOf(content);
    if (has || isTold) return it;
    const words: Message = {
      id: messageId,
      role: "user",
      status: "done",
      blocks: [{ type: "text", turn: 0, text: textOf(content) }],
      ...whole(content),
    };
    const at = it.messages.findIndex((other) => other.id === messageId);
    const messages = it.messages.slice();
    messages.splice(at < 0 ? messages.length : at, 0, words);
    return { ...it, messages };
  });
}

/** Has what waits say something else. */
function reworded(view: View, conversationId: string, messageId: string, content: string): View {
  return withConversation(view, conversationId, (it) => ({
    ...it,
    messages: it.messages.map((one) =>
      one.id !== messageId || one.role !== "user" || (one.blocks[0]?.type === "text" && one.blocks[0].text === content)
        ? one
        : { ...one, blocks: [{ type: "text", turn: 0, text: content }] },
    ),
  }));
}

/** Takes an exchange out, with what the user said in it. */
function without(view: View, conversationId: string, messageId: string): View {
  return withConversation(view, conversationId, (it) => ({
    ...it,
    messages: it.messages.filter((one) => one.id !== messageId),
  }));
}

/**
 * Draws the newest messages that the daemon remembers in place of those that were replayed; what runs or waits stays as
 * it is. For a session whose events are not all this client's own: they do not repeat what the user said.
 */
export function withHistory(view: View, page: History): View {
  return withConversation(view, page.conversationId, (it) => {
    const going = it.messages.filter((one) => one.role === "assistant" && one.status !== "done").map((one) => one.id);
    const messages = it.messages.filter((one) => going.includes(one.id));
    const running = messages.find((one) => one.status === "streaming" && one.role === "assistant");
    // The history has what runs so far, which is drawn in full already, but for how it began.
    const told = running ? page.messages.slice(0, begun(page.messages, running, messages)) : page.messages;
    return paged(it, page, [...fromHistory({ ...page, messages: told }), ...messages]);
  });
}

/** Draws a page of older messages, asked for with `before` of the conversation's `earlier`, above those that are there. */
export function withEarlier(view: View, page: History): View {
  return withConversation(view, page.conversationId, (it) => {
    const isNext = page.messages.length === 0 || (page.nextBefore ?? 0) + page.messages.length === it.earlier;
    return isNext ? paged(it, page, joined(fromHistory(page), it.messages)) : it;
  });
}

/** The text of a message's content; a picture is named by its type, a document by its name. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map(named).join("\n");
}

function named(part: Part): string {
  if (part.type === "text") return part.text;
  return part.type === "document" ? `[${part.name ?? part.mediaType}]` : `[${part.mediaType}]`;
}

/** What a message keeps of a content that is more than text. */
function whole(content: Content): { content?: Part[] } {
  const isMore = typeof content !== "string" && content.some((part) => part.type !== "text");
  return isMore ? { content } : {};
}

type Of = { conversationId: string; messageId: string };

/** What is left where events were missed: nothing runs and nothing is asked but what the resync that follows says. */
function missed(view: View): View {
  const conversations: Record<string, ConversationView> = {};
  for (const [id, it] of Object.entries(view.conversations)) {
    conversations[id] = {
      ...it,
      state: "idle",
      background: [],
      messages: it.messages.map((one) => {
        if (one.status === "done") return one;
        const { position: _, retry: __, ...rest } = one;
        return { ...rest, status: "done" };
      }),
    };
  }
  return { conversations, approvals: [], inputs: [], budgets: [], trusts: [], gap: true, isRetold: true };
}

/** After a gap, the beginning of an exchange that runs is the last answer of the history, where that is not whole. */
function continued(view: View, of: Of): View {
  const last = view.conversations[of.conversationId]?.messages.at(-1);
  const isOpen =
    view.gap && last?.role === "assistant" && last.id.startsWith("h") && last.blocks.at(-1)?.type === "tool_call";
  if (!isOpen) return view;
  return withConversation(view, of.conversationId, (it) => ({
    ...it,
    messages: [...it.messages.slice(0, -1), { ...last, id: of.messageId }],
  }));
}

function withConversation(view: View, id: string, change: (it: ConversationView) => ConversationView): View {
  const old = view.conversations[id] ?? {
    conversationId: id,
    messages: [],
    state: "idle",
    costUsd: 0,
    background: [],
  };
  const changed = change(old);
  if (changed === old && view.conversations[id]) return view;
  return { ...view, conversations: { ...view.conversations, [id]: changed } };
}

/** Changes the answer of an exchange, which is made where it is not there yet. */
function message(view: View, of: Of, change: (it: Message) => Message): View {
  return withConversation(view, of.conversationId, (conversation) => {
    const messages = conversation.messages.slice();
    // The newest is the one that is changed, nearly always.
    let at = messages.length - 1;
    while (at >= 0 && (messages[at]?.id !== of.messageId || messages[at]?.role !== "assistant")) at--;
    const old = messages[at];
    if (old) messages[at] = change(old);
    else messages.push(change({ id: of.messageId, role: "assistant", blocks: [], status: "streaming" }));
    return { ...conversation, messages };
  });
}

function delta(view: View, of: Of & { turn: number; content: string }, type: "text" | "thinking"): View {
  return message(view, of, ({ retry: _, ...it }) => {
    const blocks = it.blocks.slice();
    const last = blocks.at(-1);
    if (last && last.type === type && last.turn === of.turn) {
      blocks[blocks.length - 1] = { ...last, text: last.text + of.content };
    } else {
      blocks.push({ type, turn: of.turn, text: of.content });
    }
    return { ...it, blocks };
  });
}

/** Changes a call, which is made where it is not there yet. */
function call(
  view: View,
  of: Of & { toolId: string },
  made: { toolName?: string; turn?: number },
  change: (it: ToolCallBlock) => ToolCallBlock,
): View {
  return message(view, of, (it) => {
    const blocks = it.blocks.slice();
    let at = blocks.length - 1;
    for (; at >= 0; at--) {
      const block = blocks[at];
      if (block?.type === "tool_call" && block.toolId === of.toolId) break;
    }
    const old = blocks[at];
    if (old?.type === "tool_call") {
      blocks[at] = change(old);
    } else {
      blocks.push(
        change({
          type: "tool_call",
          turn: made.turn ?? it.blocks.at(-1)?.turn ?? 0,
          toolId: of.toolId,
          toolName: made.toolName ?? "",
          status: "running",
          phase: "planned",
          inputText: "",
          output: "",
          outputDropped: 0,
        }),
      );
    }
    return { ...it, blocks };
  });
}

/** Which question: that whether a call may run, or one of those for its hosts, which have its id. A `chat:tool-confirm` is one. */
export interface Asked {
  toolId: string;
  host?: string | null;
}

/** Whether both are of one question. */
export function isSame(one: Asked, other: Asked): boolean {
  return one.toolId === other.toolId && (one.host ?? null) === (other.host ?? null);
}

/** Sets when an open question lapses now. */
function extended(view: View, payload: ServerFrame<"chat:tool-extended">["payload"]): View {
  const { requestId, expiresAt } = payload;
  const later = <Q extends { expiresAt?: string | null }>(open: Q): Q =>
    expiresAt === undefined ? open : { ...open, expiresAt };
  if (requestId !== undefined) {
    const inputs = view.inputs.map((open) => (open.requestId === requestId ? later(open) : open));
    return { ...view, inputs };
  }
  const approvals = view.approvals.map((open) => (isSame(open, payload) ? later(open) : open));
  return call({ ...view, approvals }, payload, {}, (it) =>
    it.confirm && isSame(it.confirm, payload) ? { ...it, confirm: later(it.confirm) } : it,
  );
}

/**
 * The call that output belongs to. A command in the background writes in later exchanges than its call's; where its call
 * is not shown, as after a gap, neither is what it writes.
 */
function writer<Delta extends Of & { toolId: string }>(view: View, of: Delta): Delta | undefined {
  const { conversationId, toolId } = of;
  const conversation = view.conversations[conversationId];
  if (!conversation?.background.some((it) => it.toolId === toolId)) return of;
  const its = (it: Block): boolean => it.type === "tool_call" && it.toolId === toolId;
  const shown = conversation.messages.find((it) => it.role === "assistant" && it.blocks.some(its));
  return shown && { ...of, messageId: shown.id };
}

function appended(it: ToolCallBlock, chunk: string): { output: string; outputDropped: number } {
  const output = it.output + chunk;
  // Cut seldom, since each cut copies.
  if (output.length <= 2 * OUTPUT_CHARS) return { output, outputDropped: it.outputDropped };
  const dropped = output.length - OUTPUT_CHARS;
  return { output: output.slice(dropped), outputDropped: it.outputDropped + dropped };
}

function state(view: View, of: ServerFrame<"chat:state">["payload"]): View {
  const { conversationId, messageId, toolId } = of;
  const named = withConversation(view, conversationId, (it) =>
    it.state === of.state ? it : { ...it, state: of.state },
  );
  if (messageId === undefined) return named;
  const exchange = { conversationId, messageId };
  if (of.state === "retrying") {
    const retry = { attempt: of.attempt ?? 2, delayMs: of.delayMs ?? 0, reason: of.reason ?? "" };
    return message(named, exchange, (it) => ({ ...it, retry }));
  }
  if (of.state === "tool-queued" && toolId !== undefined) {
    return call(named, { ...exchange, toolId }, {}, (it) => ({
      ...it,
      phase: "queued",
      ...(of.reason !== undefined && { waitsFor: of.reason }),
    }));
  }
  return named;
}

function ended(view: View, end: StreamEnd): View {
  const messages = view.conversations[end.conversationId]?.messages ?? [];
  // What the exchange said is in the history that came after the gap.
  const isTold = view.gap && !messages.some((it) => it.id === end.messageId && it.role === "assistant");
  const settled = isTold ? view : message(view, end, ({ retry: _, position: __, ...it }) => ({
    ...it,
    status: "done",
    end,
    blocks: it.blocks.map((block) =>
      block.type === "tool_call" && block.status === "running"
        ? { ...block, status: "error", phase: "done" }
        : block,
    ),
  }));
  return withConversation(settled, end.conversationId, (it) => ({
    ...it,
    costUsd: it.costUsd + (end.costUsd ?? 0),
  }));
}

function stateOf(view: View, payload: ServerFrame<"session:state-result">["payload"]): View {
  let now: View = { ...view, approvals: payload.approvals, inputs: payload.inputs ?? [], budgets: payload.budgets ?? [], trusts: payload.trusts ?? [] };
  for (const { conversationId, state, background } of payload.conversations) {
    now = withConversation(now, conversationId, (it) => ({ ...it, state, background: background ?? [] }));
  }
  return now;
}

/** A whole message of the layer `message`; what its deltas have shown already is left. */
function said(view: View, conversationId: string, messageId: string, whole: WireMessage): View {
  if (whole.role === "user") return withUserMessage(view, conversationId, messageId, whole.content);
  const known = view.conversations[conversationId]?.messages.find(
    (it) => it.id === messageId && it.role === "assistant",
  );
  const calls = whole.toolCalls ?? [];
  const shown =
    whole.role === "tool"
      ? known?.blocks.some((it) => it.type === "tool_call" && it.toolId === whole.toolCallId && it.phase === "done")
      : known?.blocks.some((it) => it.type === "text" && it.text === textOf(whole.content)) ||
        (calls.length > 0 &&
          calls.every((one) => known?.blocks.some((it) => it.type === "tool_call" && it.toolId === one.id)));
  if (shown) return view;
  return message(view, { conversationId, messageId }, (it) => ({
    ...it,
    blocks: withWhole(it.blocks, whole),
  }));
}

/** A conversation with these messages, of which the first are those of a page. */
function paged(it: ConversationView, page: History, messages: Message[]): ConversationView {
  const { earlier: _, ...rest } = it;
  return { ...rest, messages, ...(page.nextBefore !== undefined && { earlier: page.nextBefore }) };
}

/** How many messages of a history are drawn above an exchange that runs: all to the one that it began with. */
function begun(history: WireMessage[], running: Message, shown: Message[]): number {
  const steered = running.blocks.filter((block) => block.type === "steered").length;
  // One that is shown: by itself, or at the head of its exchange.
  const isShown = running.blocks[0]?.type === "steered" || shown.some((one) => one.role === "user" && one.id === running.id);
  const words = running.blocks[0]?.type === "steered" ? steered : steered + 1;
  const places = history.flatMap((one, place) => (one.role === "user" ? [place] : []));
  const place = places.at(-words);
  if (place === undefined) return 0;
  return isShown ? place : place + 1;
}

/** The messages of a history; an answer goes on until the user speaks again. */
function fromHistory(page: History): Message[] {
  const first = page.nextBefore ?? 0;
  const messages: Message[] = [];
  for (const [at, one] of page.messages.entries()) {
    const place = first + at;
    const id = `h${place + 1}`;
    if (one.role === "user") {
      const text = textOf(one.content);
      messages.push({ id, role: "user", place, status: "done", blocks: [{ type: "text", turn: 0, text }], ...whole(one.content) });
      continue;
    }
    const last = messages.at(-1);
    if (last?.role === "assistant") last.blocks = withWhole(last.blocks, one);
    else messages.push({ id, role: "assistant", place, status: "done", blocks: withWhole([], one) });
  }
  return messages;
}

/** Two pages as one: the newer one may begin in the middle of an answer. */
function joined(older: Message[], newer: Message[]): Message[] {
  const last = older.at(-1);
  const first = newer[0];
  if (last?.role !== "assistant" || first?.role !== "assistant" || first.place === undefined) return [...older, ...newer];
  const blocks = last.blocks.slice();
  const turns = (blocks.at(-1)?.turn ?? -1) + 1;
  for (const block of first.blocks) {
    const at = blocks.findIndex((it) => it.type === "tool_call" && block.type === "tool_call" && it.toolId === block.toolId);
    const called = blocks[at];
    if (called?.type === "tool_call" && block.type === "tool_call") {
      const { status, phase, result, content } = block;
      blocks[at] = { ...called, status, phase, ...(result !== undefined && { result }), ...(content && { content }) };
    } else {
      blocks.push({ ...block, turn: block.turn + turns });
    }
  }
  return [...older.slice(0, -1), { ...last, blocks }, ...newer.slice(1)];
}

function withWhole(old: Block[], message: WireMessage): Block[] {
  const blocks = old.slice();
  const turn = (blocks.at(-1)?.turn ?? -1) + (message.role === "tool" ? 0 : 1);
  if (message.role === "tool") {
    const at = blocks.findIndex((it) => it.type === "tool_call" && it.toolId === message.toolCallId);
    const called = blocks[at];
    const status = message.isError ? "error" : "success";
    const settled = { status, phase: "done", result: textOf(message.content), ...whole(message.content) } as const;
    if (called?.type === "tool_call") {
      blocks[at] = { ...called, ...settled };
    } else {
      // Its call is on an older page.
      const of = { toolId: message.toolCallId ?? "", toolName: message.toolName ?? "" };
      blocks.push({ type: "tool_call", turn, ...of, inputText: "", output: "", outputDropped: 0, ...settled });
    }
    return blocks;
  }
  if (message.thinking) blocks.push({ type: "thinking", turn, text: message.thinking });
  const text = textOf(message.content);
  if (text) blocks.push({ type: "text", turn, text });
  for (const one of message.toolCalls ?? []) {
    blocks.push({
      type: "tool_call",
      turn,
      toolId: one.id,
      toolName: one.name,
      status: "running",
      phase: "planned",
      inputText: "",
      input: one.input ?? {},
      output: "",
      outputDropped: 0,
    });
  }
  return blocks;
}
