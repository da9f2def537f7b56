// The daemon's codes in words for people.
import { duration } from "./dom.js";

const ERRORS = /** @type {Record<string, string>} */ ({
  provider_not_configured: "This provider has no key",
  provider_auth: "The provider does not accept the key",
  provider_rate_limited: "The provider wants you to wait",
  provider_quota: "The provider's credit is used up",
  provider_overloaded: "The provider is overloaded",
  provider_unavailable: "The provider cannot be reached",
  provider_timeout: "The provider did not answer in time",
  provider_protocol: "The provider's answer could not be read",
  provider_invalid_request: "The provider refused the request",
  context_overflow: "The conversation is too long for the model",
  model_no_tools: "This model cannot use tools",
  sandbox_violation: "Stopped at the edge of the project",
  exchange_timeout: "It took too long",
  queue_full: "Too many messages wait",
  conversation_busy: "The conversation is busy",
  internal: "A fault of the daemon",
});
/** Errors that another provider, model or key would mend. */
const SETTINGS = new Set(["provider_not_configured", "provider_auth", "provider_quota", "model_no_tools", "context_overflow"]);
/** Errors that sending again cannot mend. */
const FINAL = new Set(["sandbox_violation", "context_overflow"]);

/** @param {{code: string}} error */
export function describeError({ code }) {
  return { title: ERRORS[code] ?? "Something went wrong", needsSettings: SETTINGS.has(code), mayRetry: !FINAL.has(code) };
}

const ENDS = /** @type {Record<string, string>} */ ({
  end_turn: "",
  stop_sequence: "",
  error: "",
  max_tokens: "stopped at the longest answer allowed",
  refusal: "the model refused",
  content_filter: "stopped by the provider's filter",
  cancelled: "stopped",
  timeout: "stopped: it took too long",
  max_turns: "stopped after the most turns allowed",
  context_budget: "stopped: the context is nearly full",
  sandbox_violation: "stopped",
});

/** How an exchange ended and what it took, on one line. @param {any} end */
export function describeEnd({ stopReason, turns, toolCalls, durationMs, usage, costUsd, partial }) {
  const facts = [
    ENDS[stopReason] ?? "stopped",
    partial && "the answer is incomplete",
    turns > 0 && `${turns} ${turns === 1 ? "turn" : "turns"}`,
    toolCalls > 0 && `${toolCalls} ${toolCalls === 1 ? "call" : "calls"}`,
    usage?.inputTokens !== undefined && `${usage.inputTokens.toLocaleString("en")} in`,
    usage?.outputTokens !== undefined && `${usage.outputTokens.toLocaleString("en")} out`,
    costUsd > 0 && `$${costUsd.toFixed(4)}`,
    (turns > 0 || durationMs >= 1000) && duration(durationMs),
  ];
  return facts.filter(Boolean).join(" · ");
}

/** Why an exchange ended, to be read out. @param {string} stopReason */
export function spokenEnd(stopReason) {
  return ENDS[stopReason] || "something went wrong";
}

/**
 * How a call stands: a look (`success`, `error`, `running`, `asking`, or `neutral` for what is no fault)
 * and words.
 *
 * @param {any} it
 */
export function stateOf(it) {
  const facts = it.metadata ?? {};
  switch (it.phase) {
    case "planned": return { look: "running", words: "being written" };
    case "awaiting-approval": return { look: "asking", words: "waits for you" };
    case "queued": return { look: "neutral", words: it.waitsFor || "waits" };
    case "executing": return { look: "running", words: "running" };
  }
  const took = it.durationMs ? ` · ${duration(it.durationMs)}` : "";
  if (it.status === "success") return { look: "success", words: `done${took}` };
  if (facts.expired) return { look: "neutral", words: "nobody answered in time" };
  if (facts.denied) return { look: "neutral", words: "denied" };
  if (facts.cancelled) return { look: "neutral", words: `stopped${took}` };
  // A search that looked everywhere and found nothing has done its work.
  if (/search/.test(it.toolName) && facts.resultCount === 0 && !facts.timedOut) return { look: "neutral", words: `nothing found${took}` };
  const code = typeof facts.exitCode === "number" && facts.exitCode !== 0 ? ` · exit ${facts.exitCode}` : "";
  return { look: "error", words: `${facts.timedOut ? "timed out" : "failed"}${code}${took}` };
}
