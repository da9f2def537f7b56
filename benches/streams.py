"""A provider on loopback that streams to many at once: a process of its own, so that it does not stand in the client's way."""
import asyncio, json, multiprocessing, re


async def connection(reader, writer, answer, arguments):
    """Serves one kept connection: `answer(body, chunk, *arguments)` streams what a request is answered."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if not length:
                # It asks which models there are.
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                continue
            body = json.loads(await reader.readexactly(int(length[1])))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

            async def chunk(delta, finish=None):
                event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
                data = b"data: " + json.dumps(event).encode() + b"\n\n"
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                await writer.drain()

            await answer(body, chunk, *arguments)
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def at_rate(rate, count):
    """Waits between the numbers of this range so that so many are given a second."""
    began = asyncio.get_running_loop().time()
    for number in range(count):
        await asyncio.sleep(max(0, began + number / rate - asyncio.get_running_loop().time()))
        yield number


def provide(port, answer, arguments):
    async def serve():
        serves = lambda reader, writer: connection(reader, writer, answer, arguments)
        server = await asyncio.start_server(serves, "127.0.0.1", 0, backlog=4096, limit=1 << 24)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    asyncio.run(serve())


def start(answer, *arguments):
    """Starts it; returns its process and its port."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=provide, args=(theirs, answer, arguments), daemon=True)
    process.start()
    return process, ours.recv()
