/**
 * Looks for the daemon's program: `bin`, the variable `OUTRIGGER_BIN`, the npm package `outrigger`, the PATH. Returns its
 * path, or an error that says what to do. Whether the file is there is checked for what was found, not for what was named.
 */
export declare function findBinary(options?: {
    bin?: string;
    env?: Readonly<Record<string, string | undefined>>;
}): Promise<string | Error>;
/** What to say of a program that the system does not start. */
export declare function notStarted(program: string, error: NodeJS.ErrnoException): string;
