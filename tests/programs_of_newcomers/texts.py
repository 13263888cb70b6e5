"""Grammars, codes and tries."""

import heapq

import numpy as np

import pcbatch

RULES = [(0, 1, 2, -0.5), (0, 1, 0, -1.2), (1, 1, 1, -2.0), (2, 2, 1, -0.7)]
WORDS = {0: [(1, -0.1), (0, -3.0)], 1: [(2, -0.3)], 2: [(1, -1.5), (2, -1.6)]}


@pcbatch.autobatch
def cyk(sentence):
    """The score of the best parse of a sentence by a small grammar, -inf without one."""
    n = len(sentence)
    score = np.full((n, n + 1, 3), -np.inf)
    for i, word in enumerate(sentence):
        for symbol, weight in WORDS[word]:
            score[i, i + 1, symbol] = max(score[i, i + 1, symbol], weight)
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            j = i + width
            for k in range(i + 1, j):
                for parent, left, right, weight in RULES:
                    candidate = score[i, k, left] + score[k, j, right] + weight
                    if candidate > score[i, j, parent]:
                        score[i, j, parent] = candidate
    return score[0, n, 0], np.isfinite(score).sum()


@pcbatch.autobatch
def lz78(symbols):
    """LZ78: the number of phrases, and the output as pairs (phrase, symbol)."""
    phrases = {}
    output = []
    current = 0
    for symbol in symbols:
        key = (current, symbol)
        if key in phrases:
            current = phrases[key]
        else:
            phrases[key] = len(phrases) + 1
            output.append((current, symbol))
            current = 0
    if current:
        output.append((current, -1))
    checksum = 0
    for number, (phrase, symbol) in enumerate(output):
        checksum += (number + 1) * (3 * phrase + symbol)
    return len(phrases), len(output), checksum


MORSE = {(1,): "E", (2,): "T", (1, 2): "A", (2, 1): "N", (1, 1, 1): "S", (2, 2, 2): "O"}
SCORES = {"E": 1, "T": 1, "A": 1, "N": 2, "S": 1, "O": 3}


@pcbatch.autobatch
def morse(signal):
    """Decodes dots (1), dashes (2) and gaps (0); the scores of the letters, and how many were unknown."""
    letter = []
    total, unknown = 0, 0
    for mark in signal:
        if mark:
            letter.append(mark)
            continue
        if letter:
            name = MORSE.get(tuple(letter))
            if name is None:
                unknown += 1
            else:
                total += SCORES[name]
            letter = []
    return total, unknown, len(letter)


@pcbatch.autobatch
def huffman(counts):
    """The lengths of the codes of a Huffman tree, and the size of the text in bits."""
    heap = [(count, symbol, [symbol]) for symbol, count in enumerate(counts)]
    heapq.heapify(heap)
    lengths = [0] * len(counts)
    while len(heap) > 1:
        a, first, low = heapq.heappop(heap)
        b, second, high = heapq.heappop(heap)
        for symbol in low + high:
            lengths[symbol] += 1
        heapq.heappush(heap, (a + b, min(first, second), low + high))
    bits = sum(count * length for count, length in zip(counts, lengths))
    return lengths, bits


def tokens(text):
    """Numbers of more than one digit, and brackets (-1, -2) as they are; -9 is a blank."""
    number, inside = 0, False
    for c in text:
        if 0 <= c <= 9:
            number = 10 * number + c
            inside = True
            continue
        if inside:
            yield "number", number
            number, inside = 0, False
        if c == -1:
            yield "open", 0
        elif c == -2:
            yield "close", 0
    if inside:
        yield "number", number


@pcbatch.autobatch
def json_depth(text):
    """The sum of all numbers, each times its depth, and the greatest depth; unbalanced brackets fail."""
    depth = deepest = total = 0
    for kind, value in tokens(text):
        match kind:
            case "open":
                depth += 1
                deepest = max(deepest, depth)
            case "close":
                depth -= 1
                if depth < 0:
                    raise ValueError("closed too often")
            case "number":
                total += value * depth
    return total, deepest, depth == 0


PROGRAMS = {
    "cyk": (cyk, np.array([[0, 1, 0, 2], [1, 0, 0, 1], [0, 0, 1, 1], [2, 1, 2, 2]])),
    "lz78": (
        lz78,
        np.array(
            [[0, 1, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [1, 2, 1, 2, 1, 2, 1, 2], [0, 1, 2, 3, 2, 1, 0, 1]]
        ),
    ),
    "morse": (
        morse,
        np.array(
            [[1, 1, 1, 0, 2, 2, 2, 0], [1, 0, 2, 0, 1, 2, 0, 2], [2, 2, 0, 1, 1, 1, 1, 0], [0, 0, 0, 2, 1, 0, 1, 0]]
        ),
    ),
    "huffman": (huffman, np.array([[5, 9, 12, 13], [1, 1, 1, 1], [40, 1, 3, 2], [7, 7, 2, 20]])),
    "json_depth": (
        json_depth,
        np.array(
            [
                [-1, 1, 2, -9, -1, 3, -2, -2],
                [4, 2, -9, -1, 5, -2, 7, -9],
                [-1, -1, -1, 9, 9, -2, -2, -2],
                [-1, -2, -1, -2, -1, 0, 1, -2],
            ]
        ),
    ),
}
