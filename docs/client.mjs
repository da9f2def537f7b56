// A frontend in fifty lines: starts the daemon, reads its ready line, talks to it, answers an approval.
//
//   node docs/client.mjs [PROGRAM]          Node.js 22; with 20, add --experimental-websocket
//
// The same in Electron's main process; in a renderer or a web page only the WebSocket part, with url and token
// handed over by whoever started the daemon.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

if (typeof WebSocket === 'undefined') {
  console.error('this Node.js has no WebSocket: use version 22, or node --experimental-websocket');
  process.exit(2);
}
const program = process.argv[2] ?? 'target/release/outrigger';
// A pipe on stdin: however this process dies, the end of the pipe ends the daemon and all that it runs.
const daemon = spawn(program, ['--port', '0', '--project-root', process.cwd()], {
  stdio: ['pipe', 'pipe', 'inherit'],
});

const [line] = await new Promise((resolve, reject) => {
  createInterface({ input: daemon.stdout }).once('line', (line) => resolve([line]));
  daemon.once('error', reject);
}).catch((error) => {
  console.error(`cannot start ${program}: ${error.message}; build it (cargo build --release) or name it: node docs/client.mjs PROGRAM`);
  process.exit(2);
});
const start = JSON.parse(line);
if (start.event !== 'ready') throw new Error(`${start.message}; ${start.hint}`);

// Browsers cannot set headers on a WebSocket; the token goes as a second subprotocol.
const socket = new WebSocket(start.url, ['outrigger.v1', `bearer.${start.token}`]);
const send = (type, payload) => socket.send(JSON.stringify({ type, payload }));

socket.onmessage = ({ data }) => {
  const { type, payload } = JSON.parse(data);
  switch (type) {
    case 'session:ready': return send('chat:send', { content: 'demo' });
    case 'chat:text-delta': return process.stdout.write(payload.content);
    case 'chat:tool-confirm':
      // A real frontend shows tool, input, danger and preview here and asks.
      console.log(`\n\n[approving ${payload.toolName} ${JSON.stringify(payload.input)}: ${payload.reason}]\n`);
      return send('chat:tool-approve', { toolId: payload.toolId, host: payload.host, approved: true });
    case 'chat:error': return console.error(`${payload.code}: ${payload.message}`);
    case 'chat:stream-end':
      console.log(`\n[${payload.stopReason}, ${payload.turns} turns, ${payload.toolCalls} tool calls]`);
      return socket.close(1000);
  } // Types that are not known here are ignored: the daemon may add some.
};
socket.onclose = () => daemon.stdin.end();
daemon.once('exit', (code) => { process.exitCode = code; });
