"""llama.cpp's HTTP server out of PyPI's `xllamacpp`, which has it as a library, with the arguments of the program `llama-server`."""

import argparse
import signal

import xllamacpp

given = argparse.ArgumentParser()
given.add_argument("--model", required=True)
given.add_argument("--alias", required=True)
given.add_argument("--ctx-size", type=int, required=True)
given.add_argument("--parallel", type=int, required=True)
given.add_argument("--threads", type=int, required=True)
given.add_argument("--port", type=int, required=True)
given.add_argument("--chat-template")
given.add_argument("--api-key")
given = given.parse_args()

params = xllamacpp.CommonParams()
params.model.path = given.model
params.model_alias = {given.alias}
params.n_ctx = given.ctx_size
params.n_parallel = given.parallel
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
params.port = given.port
if given.chat_template:
    params.chat_template = given.chat_template
if given.api_key:
    params.api_keys = [given.api_key]
server = xllamacpp.Server(params)
# SIGTERM ends it, as it ends the program.
signal.pause()
