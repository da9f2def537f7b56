// node types.mjs [FILE]: makes src/protocol.ts, or FILE, of fixtures/schema/protocol.schema.json, which is made of the daemon's types.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compile } from "json-schema-to-typescript";

const contract = readFileSync(join(import.meta.dirname, "../../fixtures/schema/protocol.schema.json"), "utf8");
const { ClientFrame, ServerFrame, ...types } = JSON.parse(contract.replaceAll("#/$defs/", "#/definitions/")).$defs;

const HEAD = `// Made of fixtures/schema/protocol.schema.json by \`npm run build\`; do not edit.
// SHA-256 of it: ${createHash("sha256").update(contract).digest("hex")}
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. \`session:ready\` of a resumed socket has no \`seq\`, nor what a socket with a role
// alone is told.

/** The version of the contract. */
export const PROTOCOL_VERSION = 1;

/** The WebSocket subprotocol. */
export const SUBPROTOCOL = "outrigger.v1";

/** A request of one type, or of any. */
export type ClientFrame<K extends keyof Commands = keyof Commands> = {
  [T in K]: { type: T; id?: RequestId; payload: Commands[T] };
}[K];

/** An event or an answer of one type, or of any: told apart by \`type\`. */
export type ServerFrame<K extends keyof Events = keyof Events> = {
  [T in K]: {
    type: T;
    /** Counts from 1 in each session, without gaps. */
    seq?: number;
    /** The \`id\` of the request that this answers. */
    replyTo?: RequestId;
    /** The task that this is of: the id of the call that began it. Its conversation is \`task:\` and that id. */
    taskId?: string;
    /** RFC 3339, UTC, milliseconds. */
    timestamp: string;
    payload: Events[T];
  };
}[K];
`;

/** Writes a schema so that the generator names each type once and loses no description. */
function plain(schema) {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== "object" || schema === null) return schema;
  const { $ref, ...rest } = schema;
  // What stands beside a reference would make a type of its own.
  if ($ref) return rest.description ? { description: rest.description, allOf: [{ $ref }] } : { $ref };
  const made = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, plain(value)]));
  // Of a field with two spellings the first is the one that is written.
  const spelt = (rest.allOf ?? []).flatMap((choice) => choice.anyOf?.[0].required ?? []);
  if (spelt.length > 0) {
    delete made.allOf;
    made.required = [...rest.required, ...spelt];
  }
  const words = (rest.oneOf ?? []).filter((choice) => typeof choice.const === "string" && choice.description);
  const meanings = words.map((word) => `- \`${word.const}\`: ${word.description}`);
  if (meanings.length > 0) made.description = [rest.description, "", ...meanings].join("\n");
  return made;
}

/** The payloads of one direction, by the type of the frame. */
function payloads(description, frames) {
  const payloads = frames.oneOf.map(({ title, description, properties }) => {
    const { description: _, ...payload } = properties.payload;
    const anything = Object.keys(payload).length === 0 ? { tsType: "unknown" } : {};
    return [title, plain({ ...payload, ...anything, description })];
  });
  const properties = Object.fromEntries(payloads);
  return { description, type: "object", properties, required: Object.keys(properties) };
}

const definitions = {
  Commands: payloads("What a client may say: the payload of each type of request.", ClientFrame),
  Events: payloads("What a client gets: the payload of each type of event or answer.", ServerFrame),
  ...plain(types),
};
const made = await compile({ type: "object", additionalProperties: false, definitions }, "Contract", {
  additionalProperties: false,
  bannerComment: HEAD,
  style: { bracketSpacing: true },
  unreachableDefinitions: true,
});
// The generator names the root of the document, which is no type here, and says so of each type.
const own = made
  .replace("export interface Contract {}\n", "")
  .replace(/( \*\n)? \* This interface was referenced by[^]*?( \*\/\n)/g, "$2")
  .replaceAll("/**\n */\n", "");
writeFileSync(process.argv[2] ?? join(import.meta.dirname, "src/protocol.ts"), own);
