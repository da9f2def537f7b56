"use strict";
// Where the daemon's program is: named, in the npm package `outrigger`, or on the PATH.
var __createBinding = (this && this.__createBinding) || (Object.create ? (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    var desc = Object.getOwnPropertyDescriptor(m, k);
    if (!desc || ("get" in desc ? !m.__esModule : desc.writable || desc.configurable)) {
      desc = { enumerable: true, get: function() { return m[k]; } };
    }
    Object.defineProperty(o, k2, desc);
}) : (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    o[k2] = m[k];
}));
var __setModuleDefault = (this && this.__setModuleDefault) || (Object.create ? (function(o, v) {
    Object.defineProperty(o, "default", { enumerable: true, value: v });
}) : function(o, v) {
    o["default"] = v;
});
var __importStar = (this && this.__importStar) || (function () {
    var ownKeys = function(o) {
        ownKeys = Object.getOwnPropertyNames || function (o) {
            var ar = [];
            for (var k in o) if (Object.prototype.hasOwnProperty.call(o, k)) ar[ar.length] = k;
            return ar;
        };
        return ownKeys(o);
    };
    return function (mod) {
        if (mod && mod.__esModule) return mod;
        var result = {};
        if (mod != null) for (var k = ownKeys(mod), i = 0; i < k.length; i++) if (k[i] !== "default") __createBinding(result, mod, k[i]);
        __setModuleDefault(result, mod);
        return result;
    };
})();
Object.defineProperty(exports, "__esModule", { value: true });
exports.findBinary = findBinary;
exports.notStarted = notStarted;
const node_fs_1 = require("node:fs");
const node_path_1 = require("node:path");
const NAME = process.platform === "win32" ? "outrigger.exe" : "outrigger";
/**
 * A file of an Electron application as the system can start it: what is inside of `app.asar` is no file of its own, and
 * packagers put programs beside it, into `app.asar.unpacked`; in a universal application into `app-x64.asar.unpacked`.
 */
function unpacked(path) {
    return path.replace(/\.asar(?=[\\/])/, ".asar.unpacked");
}
/** On the PATH; its relative entries, and the working directory where Windows looks first, are places a project can write. */
function onPath(env) {
    const name = Object.keys(env).find((it) => it.toUpperCase() === "PATH");
    const folders = (name === undefined ? "" : (env[name] ?? "")).split(node_path_1.delimiter).filter(node_path_1.isAbsolute);
    return folders.map((folder) => (0, node_path_1.join)(folder, NAME)).find((path) => (0, node_fs_1.existsSync)(path) && (0, node_fs_1.statSync)(path).isFile());
}
/** That of the npm package, or why not. */
async function ofPackage() {
    // By a variable: bundlers would put the package into their bundle, where it finds no program.
    const name = "outrigger";
    let found;
    try {
        found = (await Promise.resolve(`${name}`).then(s => __importStar(require(s))));
    }
    catch (error) {
        return new Error(`the npm package \`outrigger\`, which brings it, is not installed (${error.code ?? String(error)}): npm install outrigger`);
    }
    try {
        return (found.binaryPath ?? found.default?.binaryPath)();
    }
    catch (error) {
        return error;
    }
}
/**
 * Looks for the daemon's program: `bin`, the variable `OUTRIGGER_BIN`, the npm package `outrigger`, the PATH. Returns its
 * path, or an error that says what to do. Whether the file is there is checked for what was found, not for what was named.
 */
async function findBinary(options = {}) {
    const env = options.env ?? process.env;
    // Either may be set where only this process, or only the daemon's environment, has it.
    const named = options.bin ?? (env.OUTRIGGER_BIN || process.env.OUTRIGGER_BIN);
    if (named)
        return unpacked(named);
    const packaged = await ofPackage();
    if (typeof packaged === "string")
        return unpacked(packaged);
    return (onPath(env) ??
        new Error(`no Outrigger to start. None is on the PATH, none is named by the option \`bin\` or by OUTRIGGER_BIN, and ${packaged.message}`));
}
/** What to say of a program that the system does not start. */
function notStarted(program, error) {
    const what = `${program} could not be started: ${error.message}`;
    if (program.includes(".asar.unpacked") && error.code === "ENOENT") {
        return `${what}. The packager has to leave it outside of app.asar: for electron-builder, "asarUnpack": ["node_modules/@outrigger/**"]`;
    }
    if (error.code === "ENOENT" && (0, node_fs_1.existsSync)(program)) {
        // The loader that the file names is what is not there.
        return `${what}. The file is there, but made for another C library: install the package for this system (@outrigger/linux-*-musl on Alpine)`;
    }
    if (error.code === "ENOENT")
        return `${what}. Is the project's folder there, and does OUTRIGGER_BIN or \`bin\` name a file?`;
    if (error.code === "EACCES")
        return `${what}. It has to be executable: chmod +x`;
    return what;
}
