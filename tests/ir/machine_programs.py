"""Small programs of the machine dialect in the IR's own text, which several tests share."""

# The blocks of FIBONACCI_STACK of `programs`: n and left survive a call that re-enters.
FIBONACCI = """\
program machine fibonacci(n) -> result
  var n: int32[]  cached stack
  var result: int32[]  register
  var left: int32[]  cached stack
  var t0: bool[]  temporary
  site 0: MAX_DEPTH "RecursionError: more than max_depth calls deep"
  site 1: MAX_STEPS "more than max_steps loop turns and calls"

function fibonacci
b0:
  piece (n) -> t0:
    t0 = n <= 1
  branch t0 b1 b2
b1:
  piece () -> result:
    result = 1
  return
b2:
  piece (n) -> n:
    n = n - 2
  push n
  pushjump b0, back to b3, site 0  steps 1
b3:
  pop n
  piece (result, n) -> left, n:
    left = result
    n = n - 1
  push left  saved left
  pushjump b0, back to b4, site 0  steps 1
b4:
  pop left
  piece (left, result) -> result:
    result = left + result
  dead left
  return
"""

# The loop's test also stands in the block that jumps back to it.
GCD = """\
program machine gcd(a, b) -> result
  var a: int32[]  register
  var b: int32[]  register
  var result: int32[]  register
  var t0: bool[]  temporary
  site 0: ARITHMETIC "ZeroDivisionError: integer division or modulo by zero"
  site 1: MAX_STEPS "more than max_steps loop turns and calls"
  order b0, b2, b1

function gcd
b0:
  piece (b) -> t0:
    t0 = b != 0
  branch t0 b1 b2
b1:
  rows 16
  piece (a, b) -> a, b, t0:
    check 0: a, b = (b, a % b)
    t0 = b != 0
  jump branch t0 b1 b2, turn  steps 1
b2:
  piece (a) -> result:
    result = a
  return
"""

SQUARES = """\
program machine squares(array, n) -> array
  var array: int32[4]  register
  var n: int32[]  register
  var i: weak int32[]  register
  var t0: bool[]  temporary
  var t1: int32[]  temporary
  site 0: INDEX "IndexError: index out of range"
  site 1: MAX_STEPS "more than max_steps loop turns and calls"

function squares
b0:
  piece () -> i:
    i = 0
  jump b1
b1:
  piece (i, n) -> t0:
    t0 = i < n
  branch t0 b2 b3
b2:
  piece (i) -> t1:
    t1 = i * i
  store array[i] = t1  site 0
  piece (i) -> i:
    i = i + 1
  jump b1, turn  steps 1
b3:
  return
"""

# The squares of all turns may be computed at once.
DEFERRED = """\
program machine squares(array, n) -> array
  var array: int32[4]  register
  var n: int32[]  register
  var i: weak int32[]  register
  var t0: bool[]  temporary
  var t1: int32[]  temporary
  site 0: INDEX "IndexError: index out of range"

function squares
b0:
  piece () -> i:
    i = 0
  jump b1
b1:
  turns i of n, at most 4, of b0
  piece (i) -> t1:
    t1 = i * i
  store array[i] = t1  site 0
  piece (i, n) -> i, t0:
    i = i + 1
    t0 = i < n
  branch t0 b1 b2
b2:
  return
"""

CHECKED = """\
program machine checked(x, n) -> result
  var x: int32[]  register
  var n: int32[]  register
  var result: int32[]  register
  var t0: bool[]  temporary
  site 0: ASSERTION "AssertionError: {} is not above {{0}}" x
  site 1: RAISED "ValueError: {} of {}" x, n
  site 2: ARITHMETIC "ZeroDivisionError: integer division or modulo by zero"

function checked
b0:
  piece (x) -> t0:
    t0 = x > 0
  branch t0 b2 b1
b1:
  fault 0
b2:
  piece (n) -> t0:
    t0 = n > 5
  branch t0 b3 b4
b3:
  piece (x) -> x:
    x = x + 100
  fault 1
b4:
  piece (x, n) -> result:
    check 2: result = x // n
  return
"""

# `if n > 0: total = 100 // n` and, within, a store; the branch is a predicate.
CONVERTED = """\
program machine converted(n, array) -> total, array, extra
  var n: int32[]  register
  var array: int32[3]  register
  var total: int32[]  register
  var extra: int32[]  register
  var t0: bool[]  temporary
  var t1: int32[]  temporary
  site 0: ARITHMETIC "ZeroDivisionError: integer division or modulo by zero"
  site 1: INDEX "IndexError: index out of range"

function converted
b0:
  piece (n) -> t0, total:
    t0 = n > 0
    total = -1
  piece (n) -> total, t1  if t0:
    check 0: total = 100 // n
    t1 = n - 1
  store array[t1] = total  site 1  if t0
  piece (t1) -> extra:
    extra = t1 + 1
  return
"""

# Two calls of `helper`, in two functions; lanes wait for each other before the costly block; w is shared by all lanes.
EVERYTHING = """\
program machine everything(x) -> y
  var x: float32[3]  cached stack
  var kept: float32[3]  cached stack
  var y: float32[]  register
  var pair: (int32[], {a: bool[]})  stack
  var t0: float32[3]  temporary
  var w: float32[3]  shared
  var scale: float32[]  shared
  pointer x: kept
  site 0: MAX_DEPTH "RecursionError: more than max_depth calls deep"
  site 1: MAX_STEPS "more than max_steps loop turns and calls"
  site 2: INDEX "IndexError: index out of range"
  structure (float32[],)

function everything
b0:
  piece (x) -> kept, pair:
    kept = x
    pair = (1, {'a': True})
  jump b1

function Model.step
b1, sync, cost 1000.0:
  rows 8, all from 48
  piece (x) -> x, t0  shared w, scale  tapes:
    enter tape.record(x) as t
    check -: t0 = x * w[0]
    check 2, -: x = t0 / scale
    exit
  push x
  push kept  saved t0
  pushjump b2, back to b3, site 0  steps 1
b2:
  piece (x) -> y:
    y = sum(x)
  return

function everything
b3:
  pop x, kept
  piece (y, kept) -> y:
    y = y + sum(kept)
  dead x, kept
  return
"""

FORKED = (
    FIBONACCI.replace(
        "  var t0",
        """\
  var n_1: int32[]  register
  var one: int32[]  slot
  var other: int32[]  slot
  var n_2: int32[]  temporary
  var t0""",
        1,
    )
    .replace(
        """b2:
  piece (n) -> n:
    n = n - 2
""",
        """b2:
  piece (n) -> n_1:
    n_1 = copy n
  piece (n) -> n:
    n = n - 2
  piece (n_1) -> n_2  speculative:
    n_2 = n_1 - 1
""",
        1,
    )
    .replace("b3, site 0", "b3, site 0, fork (n = n) -> one = result; (n = n_2) -> other = result; join b5", 1)
    + """\
b5:
  piece (one, other) -> result:
    result = one + other
  return
"""
)

ALL = {
    "forked": FORKED,
    "fibonacci": FIBONACCI,
    "gcd": GCD,
    "squares": SQUARES,
    "checked": CHECKED,
    "converted": CONVERTED,
    "everything": EVERYTHING,
}
