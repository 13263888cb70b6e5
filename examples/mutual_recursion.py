"""A parser: three functions that call each other, one arithmetic expression per lane, and errors that stay in theirs.

Look at: this is the recursive descent that one writes for a single text. Each lane is in its own function, at its own
place in its own text. `(1 + 2` and `1 / 0` are wrong, and `run.errors` says so with the line of the parser; all other
lanes have their results.
"""

import numpy as np

import pcbatch

ADD, SUBTRACT, MULTIPLY, DIVIDE, OPEN, CLOSE, ZERO, NINE = (ord(character) for character in "+-*/()09")
END = 0


@pcbatch.autobatch
def evaluate(text):
    """The value of an arithmetic expression, given as character codes with zeros behind."""
    value, at = expression(text, 0)
    assert text[at] == END, f"character {at} belongs to no expression"
    return value


@pcbatch.autobatch
def expression(text, at):
    """Sums, `term { ("+" | "-") term }`, beginning at character `at`: the value, and where it ends."""
    value, at = term(text, at)
    while text[at] in (ADD, SUBTRACT):
        operator = text[at]
        right, at = term(text, at + 1)
        value = value + right if operator == ADD else value - right
    return value, at


@pcbatch.autobatch
def term(text, at):
    """Products, `factor { ("*" | "/") factor }`."""
    value, at = factor(text, at)
    while text[at] in (MULTIPLY, DIVIDE):
        operator = text[at]
        right, at = factor(text, at + 1)
        if operator == MULTIPLY:
            value *= right
        else:
            value //= right
    return value, at


@pcbatch.autobatch
def factor(text, at):
    """A number, `"-" factor` or `"(" expression ")"`."""
    if text[at] == SUBTRACT:
        value, at = factor(text, at + 1)
        return -value, at
    if text[at] == OPEN:
        value, at = expression(text, at + 1)
        assert text[at] == CLOSE, f"character {at} should close a bracket"
        return value, at + 1
    assert ZERO <= text[at] <= NINE, f"character {at} should be a digit"
    value = 0
    while ZERO <= text[at] <= NINE:
        value = 10 * value + text[at] - ZERO
        at += 1
    return value, at


def main():
    """Seven expressions, two of them wrong, against Python's own answer."""
    texts = ["7", "1 + 2 * 3", "(1 + 2) * 3", "-(12 - 7) * -4", "((((8)))) / 3 - 100", "(1 + 2", "1 / 0"]
    codes = np.zeros([len(texts), 1 + max(map(len, texts))], np.int32)
    for row, text in zip(codes, texts, strict=True):
        characters = [ord(character) for character in text if character != " "]
        row[: len(characters)] = characters
    run = evaluate.run(codes)
    for text, value, status in zip(texts, np.asarray(run.value), run.status, strict=True):
        if status == pcbatch.LaneStatus.OK:
            print(f"{text:>20} = {value:4}, Python says {eval(text.replace('/', '//'))}")
        else:
            print(f"{text:>20}   {pcbatch.LaneStatus(status).name}")
    for error in run.errors:
        print("\n" + str(error))
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
