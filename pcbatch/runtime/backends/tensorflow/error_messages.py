"""Messages for errors of opaque operations, in a user's words, with a replacement to write."""

from __future__ import annotations

import re
import traceback

from pcbatch.ir.types import MEMBERS
from pcbatch.runtime.backends.tensorflow import operands
from pcbatch.runtime.backends.tensorflow.weak import WeakTypeError

_DTYPES = re.compile(
    r"passed to parameter|was expected to be an? \w+ tensor|conversion requested dtype|that does not match type|"
    r"that don't all match|Cannot convert a list containing a tensor of dtype"
)
_CAST = "nothing is cast by itself, as everywhere in TensorFlow: write tf.cast(.., ..) for one of the operands"
_ATTRIBUTE = re.compile(
    r"(?:AttributeError: )?'?(?:SymbolicTensor|EagerTensor|Tensor)'? object has no attribute '(\w+)'"
    r"(?:\.\s+If you are looking for numpy.*)?",
    re.DOTALL,
)
_USER_CODE = re.compile(r"^in user code:.*?^    (\w+): (.*)", re.DOTALL | re.MULTILINE)
"""A message of AutoGraph's, which tells first where the error was raised, in paragraphs of its own."""
_ARMS = "the functions that a conditional of TensorFlow's chooses from return different structures or dtypes"
_SAME_IN_ALL = re.compile(
    r"^\S+ and \S+ arguments to tf\.(?:cond|switch_case) must have the same number, type.*"
    r"|^Lengths of branch outputs of \w+ must match\..*|^'\w+' must have the same nested structure in the main and.*",
    re.DOTALL,
)
_SAME_IN_TURNS = re.compile(r"^The two structures don't have the same (?:nested structure|sequence \w+)\..*", re.DOTALL)
_ONE_SHAPE_IN_TURNS = re.compile(
    r"^Input tensor `[^`]*` enters the loop with shape \((.*?),?\), but has shape \((.*?),?\) after one iteration\..*",
    re.DOTALL,
)
_NONE = re.compile(r"^None values not supported\.?")
_BOOL = re.compile(r"^Value passed to parameter '\w+' has DataType bool not in list of allowed values.*", re.DOTALL)
_DTYPE = re.compile(r"^Value passed to parameter '\w+' has DataType (\w+) not in list of allowed values: (.*)")
_STORED = "an array of NumPy's cannot hold a number that differs from lane to lane"
ONE_SHAPE = (
    "arrays have the same shape in all lanes: take the largest length, a constant, and mask what is too much; or write "
    "a loop, `for i in range(n)`"
)
_SIZED = re.compile(
    r"^(?:TypeError: )?expected a sequence of integers or a single integer, got '<tf\.Tensor.*", re.DOTALL
)
_CONSTANT = re.compile(
    r"^(?:TypeError: )?Expected (?:any non-tensor type, but got a tensor instead"
    r"|\w+, but got Tensor\(.*\) of type 'SymbolicTensor')\.?",
    re.DOTALL,
)
_VECTOR = re.compile(
    r"Shape must be rank 2 but is rank 1 for MatMul with input shapes: .*"
    r"|Argument `[ab]` passed to `tf\.linalg\.matmul` must be at least rank 2\..*",
    re.DOTALL,
)
"""Messages of TensorFlow 2.21, and of 2.22."""
_HELPS = (
    (
        re.compile(r"as an abstract array|is not a valid JAX (?:array )?type"),
        "functions of JAX are called by `pcbatch.from_jax(f)`, made once, outside: it takes and gives tensors",
    ),
    (_CONSTANT, "write tf.stack for a list of values, `tf.cast(x, ..)` for another dtype, and else the value itself"),
    (
        re.compile(_STORED),
        "make the array of its elements, `tf.stack([0.0, v])`, or store in the batched function or in a method",
    ),
    (_BOOL, "write `tf.cast(flag, tf.int32)` for what is counted, or `1 if flag else 0`"),
    (_DTYPE, "write tf.cast(x, ..) with one of these; of Python's numbers `5.0` is a float, `5` an int"),
    (
        re.compile(r"expected (?:min_|max_)?ndim=\d+, found ndim="),
        "layers of Keras expect a batch axis: `layer(x[None])[0]`",
    ),
    (_DTYPES, _CAST),
    (re.compile(r"unexpected keyword argument 'key'"), "compare in a loop, and keep the best so far and where it was"),
    (re.compile(r"nothing broadcasts here"), "give both the same shape"),
    (
        re.compile(r"^(?:TypeError: )?unsupported operand type\(s\) for .*'list'"),
        "arithmetic is for arrays: make one of the list where it comes from, `np.array([1.0, 2.0])`, or here by "
        "tf.stack(..)",
    ),
    (re.compile(r"must support iteration"), "write a loop, `for x in xs:`, which goes over arrays, too"),
    (re.compile(r"a dict takes constant indices only"), "take an array, `prices[n]`, or compare: `5 if n == 1 else 7`"),
    (_NONE, "test for it before: `if x is None:`"),
    (_SIZED, ONE_SHAPE),
    (_VECTOR, operands.PRODUCT),
    (
        re.compile(rf"^{re.escape(_ARMS)}|{_SAME_IN_ALL.pattern}", re.DOTALL),
        "return the same structure from each: lists of one length, dicts of the same keys, numbers of the same dtypes",
    ),
    (
        _SAME_IN_TURNS,
        "let the function of a loop return the structure that it is given; tf.map_fn is told another one by "
        "fn_output_signature=..",
    ),
    (_ONE_SHAPE_IN_TURNS, ONE_SHAPE),
)
_PLAINLY = (
    (_VECTOR, "tf.matmul is of matrices, and a vector is none"),
    (
        re.compile(r"Error interpreting argument to .*? as an abstract array\..*", re.DOTALL),
        "a function of JAX is given a tensor, of which it makes no array",
    ),
    (
        re.compile(r"Input '[xy]' of '(\w+)' Op has type (\w+) that does not match type (\w+) of argument '[xy]'\.?"),
        r"TensorFlow's \1 takes operands of one dtype, not \3 and \2",
    ),
    (
        re.compile(r"Expected (\w+) passed to parameter '[xy]' of op '(\w+)', got (\S+) of type '(\w+)' instead\."),
        r"TensorFlow's \2 takes operands of one dtype, not \1 and the \4 \3",
    ),
    (
        re.compile(r"Tensors in list passed to '\w+' of '\w+' Op have types \[(.*)\] that don't all match\."),
        r"a list of several dtypes is made one array: \1",
    ),
    (
        re.compile(r"Cannot convert a list containing a tensor of dtype <dtype: '(\w+)'> to <dtype: '(\w+)'> \(.*\)"),
        r"a list of several dtypes is made one array: \2, \1",
    ),
    (_ATTRIBUTE, r"a tensor has no attribute `\1`"),
    (
        re.compile(r"^(?:NotImplementedError: )?Cannot convert a symbolic tf\.Tensor \([^)]*\) to a numpy array\."),
        "NumPy or Python reads a lane's number here, which has no value yet",
    ),
    (
        re.compile(r"^must be real number, not (?:SymbolicTensor|Weak)"),
        "Python reads a lane's number here, which has no value yet",
    ),
    (
        re.compile(
            r"^(?:OperatorNotAllowedInGraphError: )?Using a symbolic `tf\.Tensor` as a Python `bool` is not allowed\."
        ),
        "Python branches on a lane's value here, which is not known yet",
    ),
    (_NONE, "None is used as if it were a number"),
    (_SAME_IN_ALL, _ARMS),
    (_SAME_IN_TURNS, "the function of a loop of TensorFlow's returns another structure than it is given"),
    (_ONE_SHAPE_IN_TURNS, r"a loop of TensorFlow's has a value of shape [\1] at first, and of [\2] after a turn"),
    (_BOOL, "a bool is no number"),
    (_DTYPE, r"a number of dtype \1 is given to what takes \2"),
    (_CONSTANT, "tf.constant takes numbers that are known, not a value that may differ from lane to lane"),
    (_SIZED, "a number that differs from lane to lane is used as a size"),
    (re.compile(r"'(SymbolicTensor|Weak)' object is"), "a lane's number is"),
    (re.compile(r"(unsupported operand type\(s\) for [^:]+: )'(?:SymbolicTensor|Weak)'"), r"\1a lane's number"),
    (
        re.compile(r"(unsupported operand type\(s\) for [^:]+: .*) and '(?:SymbolicTensor|Weak)'"),
        r"\1 and a lane's number",
    ),
    (re.compile(r"len is not well defined for a symbolic Tensor.*"), "a tensor has no len() yet"),
    (re.compile(r"<tf\.Tensor '[^']*' shape=\(([^)]*?),?\) dtype=(\w+)>"), r"\2[\1]"),
)
"""Messages of TensorFlow that name its own parameters and classes, and the same in words that the user knows."""
NO_VALUE = re.compile(r"SymbolicTensor|[Ss]ymbolic `?(tf\.)?Tensor|\bWeak\b")


def reason(error: BaseException) -> str:
    """Return the reason of an error, in one paragraph.

    Our own message, where TensorFlow caught it and raised a vaguer one.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, WeakTypeError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, NotImplementedError) and isinstance(error.__context__, TypeError):
        error = error.__context__  # of an operator, whose other operand, an array, TensorFlow asked then
    if str(error).startswith("setting an array element with a sequence") and NO_VALUE.search(str(error.__cause__)):
        return _STORED
    if isinstance(error, AssertionError) and _raised_in(error).startswith("_make_indexed_slices"):
        return _ARMS  # of conditionals, which count first what their functions return
    told = _USER_CODE.search(str(error))
    if told is not None:
        text = clean(told[2])
        return text if told[1] in ("TypeError", "ValueError") else f"{told[1]}: {text}"
    text = clean(str(error))
    if type(error) in (TypeError, ValueError):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _raised_in(error: BaseException) -> str:
    """The name of the function that raised an error."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].f_code.co_name if frames else ""


def help_for(why: str) -> str:
    """Return the help for a failure with the reason `why`; "" where none is known."""
    lacking = _ATTRIBUTE.search(why)
    if lacking is not None:
        return instead_of(lacking[1])
    return next((help for pattern, help in _HELPS if pattern.search(why)), "")


def plainly(text: str) -> str:
    """A reason without TensorFlow's own parameters and classes."""
    for pattern, words in _PLAINLY:
        text = pattern.sub(words, text)
    return text


def clean(text: str) -> str:
    """TensorFlow's message without node names and instructions."""
    text = re.sub(r"\{\{(function_)?node [^}]*\}\}\s*", "", text)
    text = re.sub(r" for '= (\w+)\[[^']*'", r" for \1", text)
    text = re.sub(r" Error: Expected .*", "", text)
    text = re.sub(
        r" You can attempt the following resolutions.*| This error may indicate .*", "", text, flags=re.DOTALL
    )
    text = re.sub(r"\s*\[Op:\w+\]( name:.*)?", "", text)
    return text.strip().split("\n\n")[0].strip()


_TWINS = {
    "argpartition": "np.argsort(x)",
    "flat": "x.ravel()",
    "nbytes": "x.size",
    "partition": "x = np.sort(x)",
    "ptp": "x.max() - x.min()",
    "put": "x[i] = value",
    "resize": "x = x.reshape(..)",
    "take": "np.take(x, places)",
    "view": "tf.bitcast(x, ..)",
}


def instead_of(attribute: str) -> str:
    """Return a help text that names the replacement of an attribute."""
    if attribute in _TWINS:
        return f"write `{_TWINS[attribute]}`"
    has = ", ".join(sorted(MEMBERS))
    return f"arrays of lanes have {has}; what has no such method is a function of np or tf, or a loop"
