"""`tools.gpu_thunks`: how it reads what XLA dumps, and, where XLA for CUDA is installed, what programs do on a GPU."""

import json
import textwrap

import pytest

from tools.gpu_thunks import page
from tools.gpu_thunks.compiled import FLAGS, counted, is_installed
from tools.gpu_thunks.thunks import Counts, Executed, names_of, parsed
from tools.gpu_thunks.titles import TITLES
from tools.gpu_thunks.traffic import Traffic, bytes_of

HLO = textwrap.dedent("""\
    %fused_add (param_0: f32[8,4], param_1: s32[8], param_2: f32[8,1,4]) -> f32[8,4] {
      %param_0 = f32[8,4]{1,0} parameter(0)
      %param_1 = s32[8]{0} parameter(1)
      %param_2 = f32[8,1,4]{2,1,0} parameter(2)
      ROOT %scatter.1 = f32[8,4]{1,0} scatter(%param_0, %param_1, %param_2), update_window_dims={1,2}
    }
    %fused_read (param_0.1: f32[100,4], param_1.1: s32[2,1]) -> f32[2,4] {
      %param_0.1 = f32[100,4]{1,0} parameter(0)
      %param_1.1 = s32[2,1]{1,0} parameter(1)
      ROOT %gather.1 = f32[2,4]{1,0} gather(%param_0.1, %param_1.1), offset_dims={1}
    }
    %b (t: (s32[], f32[8,4], f32[100,4])) -> (s32[], f32[8,4], f32[100,4]) {
      %t.1 = (s32[], f32[8,4]{1,0}, f32[100,4]{1,0}) parameter(0)
      %first = s32[] get-tuple-element(%t.1), index=0
      %second = f32[8,4]{1,0} get-tuple-element(%t.1), index=1
      %third = f32[100,4]{1,0} get-tuple-element(%t.1), index=2
      %next = s32[] add(%first, %first)
      %more = f32[8,4]{1,0} add(%second, %second)
      ROOT %tuple.1 = (s32[], f32[8,4]{1,0}, f32[100,4]{1,0}) tuple(%next, %more, %third)
    }
    ENTRY %main (a: f32[8,4]) -> f32[8,4] {
      %a = f32[8,4]{1,0} parameter(0)
      %i = s32[8]{0} constant({...})
      %u = f32[8,1,4]{2,1,0} broadcast(%a)
      %table = f32[100,4]{1,0} constant({...})
      %at = s32[2,1]{1,0} constant({...})
      %add_fusion = f32[8,4]{1,0} fusion(%a, %i, /*index=2*/%u), kind=kInput, calls=%fused_add
      %read_fusion = f32[2,4]{1,0} fusion(%table, %at), kind=kLoop, calls=%fused_read
      %copy.1 = f32[8,4]{1,0} copy(%add_fusion)
      %while.1 = (s32[], f32[8,4]{1,0}) while(%t), condition=%c, body=%b, metadata={op_name="f/trips/StatelessWhile"}
      %while.2 = (s32[], f32[8,4], f32[100,4]) while(%t), condition=%c, body=%b, metadata={op_name="trips_4/While"}KNOWN
    }
    """).replace("KNOWN", ', backend_config={"known_trip_count":{"n":"4"}}')

SEQUENCE = """\
000: kCommandBuffer [source       | next=001 (1)]
    001: kCopy         [source       | sink        ] kCopy
002: kWhile         [prev=000 (1) | next=000 (1)]
condition:
    003: kCustomKernel [source | sink] add_fusion grid: [1, 1, 1]
  body:
    004: kWhile         [prev=024 (1) | next=000 (1)]       
condition:
        No thunks.      body:
        005: kCustomKernel [source | sink] add_fusion
        008: kConditional  [prev=054 (4) | next=068 (1)]
          false_branch:
            006: kCustomKernel [source | sink] read_fusion
          true_branch:
            007: kCopy [source | sink] kCopy
    009: kCopy         [prev=055 (1) | sink        ] kCopy
010: kCustomKernel [source | sink] read_fusion
"""  # noqa: W291

NAMES = {1: "copy.1", 2: "while.1", 3: "add_fusion", 4: "while.2", 5: "add_fusion", 6: "read_fusion", 7: "copy.1"}
NAMES |= {9: "copy.1", 10: "read_fusion"}


def traffic_of(name):
    return Traffic(HLO).of(name)


def metadata():
    numbered = ("" if not number else f"    thunk_id: {number}\n" for number in NAMES)
    pairs = zip(NAMES.values(), numbered, strict=True)
    return "".join(f'thunk_info {{\n    profile_annotation: "{name}"\n{number}  }}\n' for name, number in pairs)


def test_bytes_of_arrays():
    assert bytes_of("f32[3,4]{1,0}") == 48
    assert bytes_of("(s64[], /*index=1*/pred[5]{0:S(1)}, bf16[2])") == 8 + 5 + 4


def test_what_is_written_in_place_or_gathered_counts_as_the_part_that_it_is():
    traffic = Traffic(HLO)
    assert traffic.of("add_fusion") == 2 * 128 + 32 + 128  # the updates read and written, places, updates as operand
    assert traffic.of("read_fusion") == 32 + 8 + 32
    assert traffic.copied("copy.1") == 128


def test_a_trip_is_what_is_executed_between_two_looks_by_the_number_of_trips():
    thunks = parsed(SEQUENCE, names_of(metadata()))
    assert [each.kind for each in thunks] == ["CommandBuffer", "While", "CustomKernel"]
    (trip,) = Executed(Traffic(HLO)).trips(thunks)
    # Four trips of a kernel and a conditional, then a copy and the kernel of the condition: a look at that, one each.
    kernels, copies = (4 * 2 + 1) / 4, 1 / 4
    found = trip.counts
    assert (found.kernels, found.copies, found.conditionals, found.looks) == (kernels, copies, 1, 1 + 1 / 4)
    assert trip.state == 4 + 128  # not what its turns only read
    moved = [(each.kind, each.name, each.bytes) for each in trip.moved]
    assert moved[0] == ("CustomKernel", "add_fusion", traffic_of("add_fusion"))
    assert {kind for kind, _, _ in moved} == {"CustomKernel", "Copy"}
    whole = Executed(Traffic(HLO)).of(thunks)
    assert (whole.graphs, whole.looks, whole.largest_copy) == (1, 2 + 4, 128)
    assert Executed(Traffic(HLO)).of(thunks, in_graph=True).looks == 0


def test_counts_add_up():
    one = Counts(kernels=1, looks=2, largest_copy=5)
    assert (one + one).times(2) == Counts(kernels=4, looks=8, largest_copy=5)


def test_the_page_shows_the_figures_that_were_written():
    figures = page.read()
    assert {key.split(": ")[0] for key in figures} == set(TITLES)
    text = page.PAGE.read_text("utf-8")
    assert page.drawn(text, figures) == text
    assert json.loads(page.FIGURES.read_text("utf-8")) == figures


def assert_aims(key, row):
    """At most 2 looks in 16 trips, none with device loops; 80 kernels and copies; no array of all stacks copied.

    Of what a sampler's state and gradient must move, at most 1.2 times is moved.
    """
    assert row["conditionals"] == 0, key
    assert row["looks"] <= (0 if key.endswith("device loops") else 2), key
    assert row["kernels"] + row["copies"] <= 80, key
    assert row["largest copy"] < row["state"] / 4, key
    if key.startswith("sampler"):
        assert row["gradient"] > 0, key
        assert page.share(row) <= 1.2, key


def test_the_figures_keep_the_aims():
    for key, rows in page.read().items():
        for row in rows:
            assert_aims(key, row)


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="XLA for CUDA is not installed")
@pytest.mark.parametrize("name", TITLES)
def test_the_host_looks_once_in_sixteen_trips(name, tmp_path):
    for flags, found in counted(name, FLAGS, keep=tmp_path).items():
        rows = page.rows(found)
        assert rows
        for row in rows:
            assert_aims(f"{name}: {flags}", row)


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="XLA for CUDA is not installed")
@pytest.mark.parametrize(("name", "looks", "loops"), [("dear", 1, 0), ("chunks", 2, 1)])
def test_what_is_dear_is_guarded_and_no_stack_is_copied(name, looks, loops, tmp_path):
    """A guard is a look in each trip; of a loop of chunks there is one in each turn, here one, and one at its end."""
    (row,) = page.rows(counted(name, {"default": FLAGS["default"]}, keep=tmp_path)["default"])
    assert (row["looks"], row["loops"]) == (16 * looks + 1, loops + 1 / 16)
    assert row["conditionals"] == 1 - loops
    assert row["largest copy"] < row["state"] / 1000
