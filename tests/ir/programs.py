"""Small programs in the IR's own text, which several tests share."""

FIBONACCI_CFG = """\
program cfg

function fibonacci(n) -> result
b0:
  t0 = n <= 1
  branch t0 b1 b2
b1:
  result = 1
  return
b2:
  t1 = n - 2
  left = call fibonacci(t1)
  t2 = n - 1
  right = call fibonacci(t2)
  result = left + right
  return
"""

# n and left survive a call that re-enters; right does not.
FIBONACCI_STACK = """\
program stack

function fibonacci(n) -> result
  var n: int32[]  cached stack  -- read after the call in b2, which may re-enter
  var t0: bool[]  temporary  -- read in b0 only
  var result: int32[]  register  -- not read after a call that re-enters
  var left: int32[]  cached stack  -- read after the call in b3, which may re-enter
b0:
  t0 = n <= 1
  branch t0 b1 b2
b1:
  update result = 1
  return
b2:
  push n = n - 2
  pushjump b0, back to b3
b3:
  pop n
  update left = result
  update n = n - 1
  push left = left
  pushjump b0, back to b4
b4:
  pop left
  update result = left + result
  return
"""

GCD = """\
program cfg

function gcd(a, b) -> result
b0:
  t0 = b != 0
  branch t0 b1 b2
b1:
  a, b = (b, a % b)
  jump b0, turn
b2:
  result = a
  return
"""

PARITY_CFG = """\
program cfg

function even(n) -> result
b0:
  t0 = n == 0
  branch t0 b1 b2
b1:
  result = True
  return
b2:
  t1 = n - 1
  result = call odd(t1)
  return

function odd(n) -> result
b3:
  t0 = n == 0
  branch t0 b4 b5
b4:
  result = False
  return
b5:
  t1 = n - 1
  result = call even(t1)
  return
"""

# Both tail calls are jumps; the two functions share the variable of their results.
PARITY_STACK = """\
program stack

function even(n) -> result
b0:
  t0 = n == 0
  branch t0 b1 b2
b1:
  update result = True
  return
b2:
  update m = n - 1
  jump b3, turn

function odd(m) -> result
b3:
  t1 = m == 0
  branch t1 b4 b5
b4:
  update result = False
  return
b5:
  update n = m - 1
  jump b0, turn
"""

SQUARES = """\
program cfg

function squares(array, n) -> result
b0:
  i = 0
  jump b1
b1:
  t0 = i < n
  branch t0 b2 b3
b2:
  t1 = i * i
  store array[i] = t1
  i = i + 1
  jump b1, turn
b3:
  result = array
  return
"""

CHECKED = """\
program cfg

function checked(x, n) -> result
b0:
  t0 = x > 0
  branch t0 b2 b1
b1:
  fault assert "AssertionError: {} is not above {{0}}" x
b2:
  t1 = n > 5
  branch t1 b3 b4
b3:
  fault raise "ValueError: {} of {}" x, n
b4:
  result = x // n
  return
"""

# 1 + 1 + .. + 1, a call deep for every unit
COUNT_CFG = """\
program cfg

function count(n) -> result
b0:
  t0 = n == 0
  branch t0 b1 b2
b1:
  result = 0
  return
b2:
  t1 = n - 1
  below = call count(t1)
  result = below + 1
  return
"""

COUNT_STACK = """\
program stack

function count(n) -> result
b0:
  t0 = n == 0
  branch t0 b1 b2
b1:
  update result = 0
  return
b2:
  push n = n - 1
  pushjump b0, back to b3
b3:
  pop n
  update result = result + 1
  return
"""

ALL = {
    "fibonacci cfg": FIBONACCI_CFG,
    "fibonacci stack": FIBONACCI_STACK,
    "gcd": GCD,
    "parity cfg": PARITY_CFG,
    "parity stack": PARITY_STACK,
    "squares": SQUARES,
    "checked": CHECKED,
    "count cfg": COUNT_CFG,
    "count stack": COUNT_STACK,
}
