/**
 * Returns the path of the program for this system; `OUTRIGGER_BIN` names another one.
 *
 * @throws {Error} that says what to do, where there is none
 */
export declare function binaryPath(): string;
