/**
 * The whole client: `Client` talks to the daemon, `reduce` makes what it says into something to draw.
 *
 * @packageDocumentation
 */
export * from "./protocol.js";
export * from "./client.js";
export * from "./reducer.js";
export * from "./store.js";
export { type Tool, type ToolContext } from "./tools.js";
