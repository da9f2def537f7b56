#!/usr/bin/env node
// `electron FOLDER`: runs the main process of an application as Electron would, in this Node.js.
"use strict";
const { resolve, join } = require("node:path");
const { pathToFileURL } = require("node:url");

const folder = resolve(process.argv[2] ?? ".");
const { main = "index.js" } = require(join(folder, "package.json"));
void import(pathToFileURL(join(folder, main)).href);
