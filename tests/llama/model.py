"""Makes a language model of random weights, small and the same each time, that a llama.cpp can serve.

It is a llama of two layers: real attention, a real tokenizer, a real chat template with tools and thinking. Nothing was trained,
so what it says is noise, but for chains: after certain tokens one other token is likely. The template ends a prompt with a token that
begins a chain, chosen by a word of the user's (`SAY`, `CALL`, `THINK`, `FORM`, `LONG`); without one, noise follows. What a trained model decides by
itself, the user decides here; how a call is written is left to the server's grammar.
"""

import sys
from collections import Counter, defaultdict

import gguf
import numpy as np

SEED = 20261127
WIDTH, HEADS, INNER, LAYERS = 128, 2, 256, 2
#: What it was "trained" for: more than any server here gives it.
TRAINED = 32768
MERGES = 1000

#: What it says after the word `SAY`: also what is no ASCII, in tokens of several characters.
SAID = ["Hello", " from", " no", "where", ",", " grüße", " 你好", " 😀", "."]
THOUGHT = ["Let", " me", " see"]
LONG = [" on", " and"]

SPECIAL = ["<|im_start|>", "<|im_end|>", "<|say|>", "<|call|>", "<|think|>", "<|form|>", "<|long|>", "<|noise|>"]
#: Written as text by who uses them, so no control tokens.
MARKS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]

#: What ends things, and so gets noise within a grammar to its end.
LIKELY = dict.fromkeys(['"', "}"], 10.0)
#: What noise has no business with: the marks of the template, control characters, bytes that alone are no character; and what
#: would keep it in a string or a list of calls for long.
UNLIKELY, ENDLESS = -12.0, [*LONG, ","]
#: How far apart the logits of noise are, for each place of a vector, and how far those of a chain are above them.
NOISE, LEAD = 0.3, 30.0

TEMPLATE = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\nYou are provided with function signatures within <tools></tools> XML tags:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>\\n' + message.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {%- if message.content %}
            {{- message.content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and message.content) or not loop.first %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- set last = messages[-1] %}
    {%- set said = last.content if last.content is string else '' %}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
    {%- if last.role == 'tool' or 'SAY' in said %}
        {{- '<|say|>' }}
    {%- elif 'CALL' in said and tools %}
        {{- '<|call|>' }}
    {%- elif 'THINK' in said %}
        {{- '<|think|>' }}
    {%- elif 'FORM' in said %}
        {{- '<|form|>' }}
    {%- elif 'LONG' in said %}
        {{- '<|long|>' }}
    {%- else %}
        {{- '<|noise|>' }}
    {%- endif %}
{%- endif %}
"""


def letters():
    """Returns the sign that stands for each byte in a vocabulary of GPT-2's kind."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + count) for count, byte in enumerate(others)}


def written(text, signs):
    return "".join(signs[byte] for byte in text.encode())


def merges(text, most, signs):
    """Returns the pairs that come most often in the words of a text, each made one in its turn."""
    words = Counter(written(blank + word, signs) for line in text.splitlines() for blank, word in zip(["", *" " * 999], line.split()))
    parts = {word: list(word) for word in words}
    pairs, places = Counter(), defaultdict(set)
    for word, count in words.items():
        for pair in zip(parts[word], parts[word][1:]):
            pairs[pair] += count
            places[pair].add(word)
    found = []
    while len(found) < most and pairs:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < 2:
            break
        found.append(best)
        for word in sorted(places.pop(best)):
            old, new = parts[word], []
            for part in old:
                if new and (new[-1], part) == best and new[-1] is not None:
                    new[-1] += part
                else:
                    new.append(part)
            for pair in zip(old, old[1:]):
                pairs[pair] -= words[word]
            for pair in zip(new, new[1:]):
                pairs[pair] += words[word]
                places[pair].add(word)
            parts[word] = new
        pairs = +pairs
    return found


def vocabulary(text):
    """Returns the tokens with their kinds, the merges, and what number each token has by its words."""
    signs, kinds = letters(), gguf.TokenType
    pairs = merges(text, MERGES, signs)
    plain = [*signs.values(), *("".join(pair) for pair in pairs)]
    plain += [written(word, signs) for word in [*SAID, *THOUGHT, *LONG]]
    plain = list(dict.fromkeys(plain))
    tokens = [(token, kinds.NORMAL) for token in plain] + [(it, kinds.USER_DEFINED) for it in MARKS] + [(it, kinds.CONTROL) for it in SPECIAL]
    numbers = {token: number for number, (token, _) in enumerate(tokens)}
    return tokens, pairs, lambda word: numbers[word if word in MARKS or word in SPECIAL else written(word, signs)]


def chains():
    """Returns which token follows which."""
    for chain in (
        ["<|say|>", *SAID, "<|im_end|>"],
        # Then the grammar has the word; held to it, the model spells the mark of the end, whose last letter is the last one.
        ["<|call|>", "<tool_call>", "\n"],
        [">", "<|im_end|>"],
        ["<|think|>", "<think>", *THOUGHT, "</think>", SAID[0]],
        ["<|form|>", "{"],
        ["<|long|>", *LONG, LONG[0]],
    ):
        yield from zip(chain, chain[1:])


def make(path, text):
    """Writes the model to a file; its tokenizer is made of the words of a text."""
    random = np.random.default_rng(SEED)
    tokens, pairs, number = vocabulary(text)
    kinds = gguf.TokenType
    # A control character or a byte beyond ASCII: the sign of its own that GPT-2 gave it.
    is_byte = {sign for byte, sign in letters().items() if byte < 0x20 or byte > 0x7E}
    normal = lambda deviation, *shape: random.normal(0, deviation, shape).astype(np.float32)

    # The last place of each vector is the same for all tokens: a bias.
    embedding = normal(1, len(tokens), WIDTH)
    embedding[:, -1] = 1
    output = normal(NOISE, len(tokens), WIDTH)
    output[:, -1] = [UNLIKELY if kind != kinds.NORMAL or token in is_byte else 0 for token, kind in tokens]
    for word, likely in [*LIKELY.items(), *((word, UNLIKELY) for word in ENDLESS)]:
        output[number(word), -1] = likely
    # After a token of a chain no noise is left, and its successor has a lead over whatever is likely.
    befores = list(dict.fromkeys(before for before, _ in chains()))
    known = embedding[[number(before) for before in befores], :-1]
    only = np.linalg.pinv(known)
    output[:, :-1] -= output[:, :-1] @ known.T @ only.T
    for before, after in chains():
        follows = output[number(after)]
        follows[:-1] += (LEAD - min(follows[-1], 0)) * only[:, befores.index(before)]

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("outrigger-random")
    writer.add_context_length(TRAINED)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_bos_token_id(number("<|im_start|>"))
    writer.add_eos_token_id(number("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    ones = np.ones(WIDTH, dtype=np.float32)
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        tensor = lambda name, value: writer.add_tensor(f"blk.{layer}.{name}.weight", value)
        for name in ("attn_norm", "ffn_norm"):
            tensor(name, ones)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(name, normal(0.03, WIDTH, WIDTH))
        tensor("ffn_gate", normal(0.03, INNER, WIDTH))
        tensor("ffn_up", normal(0.03, INNER, WIDTH))
        tensor("ffn_down", normal(0.03, WIDTH, INNER))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as words:
        make(sys.argv[1], words.read())
