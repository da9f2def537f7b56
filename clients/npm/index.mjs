import it from "./index.js";

export const { binaryPath } = it;
