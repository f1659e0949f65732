"""Message types known by description alone: compiled, loaded, read, written, and compared with their next version."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from queuecore.errors import ConfigurationError, InvalidMessage, UndecodableMessage
from queuecore.messagetypes import compile_sources, find_incompatibilities, load_form, message_names
from queuecore.messagetypes.forms import MAX_DECODED_BYTES
from queuecore.proto.events_pb2 import DESCRIPTOR as EVENTS

ROOT = Path(__file__).parents[3]

EVERYTHING = """
syntax = "proto3";  // as most are written
package shop.v1;
import "google/protobuf/timestamp.proto";
import "shop/parts.proto";
option java_package = "org.example.shop";

/* An order,
   with what it holds. */
message Order {
  option deprecated = false;
  reserved 4, 10 to 12, 1000 to max;
  reserved "colour", 'size';
  string id = 1;
  optional int64 amount = 2 [deprecated = true, json_name = "sum"];
  repeated double ratios = 3 [packed = false];
  repeated sint32 steps = 0x7;
  map<string, Line> lines_by_name = 5;
  State state = 6;
  oneof payment {
    string card = 20;
    Parts.Inner inner = 21;
    .shop.v1.Order.Line line = 22;
  }
  optional bool gift = 23;
  google.protobuf.Timestamp at = 24;
  Order parent = 25;
  message Line {
    enum Unit { UNIT_PIECE = 0; UNIT_KILO = 1; }
    Unit unit = 1;
    bytes raw = 2;
    State state = 3;
    ;
  }
}

enum State {
  option allow_alias = true;
  reserved 5 to 7, -3;
  reserved "LOST";
  STATE_NEW = 0;
  STATE_OPEN = 0;
  STATE_OLD = -1 [deprecated = true];
}

service Shop { rpc Buy (Order) returns (Order) { option (http) = { post: "/buy" }; } }
"""
PARTS = """
syntax = "proto2";
package shop.v1;
message Parts {
  message Inner { required string name = 1 [default = "x"]; optional int32 count = 2 [default = -7]; }
  repeated Inner inner = 1;
  optional fixed64 number = 2 [(mine).thing = "a", default = 12];
  extensions 100 to 199, 500 to max;
}
"""
SOURCES = {"shop/order.proto": EVERYTHING, "shop/parts.proto": PARTS}

ORDER = """
syntax = "proto3";
package shop;
message Order {
  string id = 1;
  int32 amount = 2;
  repeated Line lines = 3;
  State state = 4;
  message Line { string name = 1; Order of = 2; }
}
enum State { NEW = 0; PAID = 1; }
"""


def form(source: str = ORDER, name: str = "shop.Order"):
    return load_form(compile_sources({"shop.proto": source}), name)


def as_loaded(descriptors: bytes) -> dict[str, FileDescriptorProto]:
    """The files as a pool understands them: names whole, types known, defaults filled in."""
    pool, found = DescriptorPool(), {}
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for file in sorted(FileDescriptorSet.FromString(descriptors).file, key=lambda file: len(file.dependency)):
        pool.AddSerializedFile(file.SerializeToString())
        found[file.name] = FileDescriptorProto()
        pool.FindFileByName(file.name).CopyToProto(found[file.name])
    return found


def protoc(folder: Path, sources: dict[str, str]) -> bytes:
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    out = folder / "set.bin"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={out}", *sources]
    subprocess.run(command, check=True, cwd=folder)
    return out.read_bytes()


def reduced(file: FileDescriptorProto) -> FileDescriptorProto:
    """Without what changes nothing in what is stored."""
    file = FileDescriptorProto.FromString(file.SerializeToString())
    del file.service[:]
    file.ClearField("options")
    waiting = list(file.message_type)
    for enum in file.enum_type:
        for value in enum.value:
            value.ClearField("options")
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        if not message.options.map_entry:
            message.ClearField("options")
        for field in message.field:
            field.options.ClearField("deprecated")
            # protoc writes this down even where it goes without saying.
            if field.json_name == re.sub("_([a-z])", lambda found: found[1].upper(), field.name):
                field.ClearField("json_name")
            if not field.options.ByteSize():
                field.ClearField("options")
    return file


def test_sources_become_what_protoc_makes_of_them(tmp_path: Path) -> None:
    # protoc does not know this one, which is somebody's own.
    sources = SOURCES | {"shop/parts.proto": PARTS.replace('(mine).thing = "a", ', "")}
    sources["shop/order.proto"] = EVERYTHING.replace('option (http) = { post: "/buy" };', "")
    ours, theirs = as_loaded(compile_sources(SOURCES)), as_loaded(protoc(tmp_path, sources))
    assert ours.keys() == theirs.keys()
    for name, file in ours.items():
        assert reduced(file) == reduced(theirs[name])


@pytest.mark.parametrize("name", ["cluster", "events"])
def test_our_own_sources_are_understood(name: str) -> None:
    path = f"queuecore/proto/{name}.proto"
    descriptors = compile_sources({path: (ROOT / path).read_text()})
    assert message_names(descriptors)


def test_messages_are_listed_without_those_that_maps_are_made_of() -> None:
    assert message_names(compile_sources(SOURCES)) == [
        "shop.v1.Order",
        "shop.v1.Order.Line",
        "shop.v1.Parts",
        "shop.v1.Parts.Inner",
    ]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("message A { string a = 1 }", "a.proto, line 1: ';' is expected, and there is '}'"),
        ("message A {\n  string a;\n}", "line 2: '=' is expected"),
        ("message A { string a = 0; }", "0 cannot be; use 1 to 536870911"),
        ("message A { string a = 536870912; }", "cannot be"),
        ("message A { string a = 1.5; }", "a whole number is expected"),
        ("message A { string a = 99999999999999999999999; }", "a whole number"),
        ("message A {", "a name is expected, and there is the end"),
        ("service A {", "'}' is expected"),
        ("messages A {}", "'messages' is not understood"),
        ("extend A { string b = 100; }", "'extend' is not understood; send what protoc makes"),
        ("message A { repeated group B = 1 {} }", "only protoc understands"),
        ('syntax = "proto4";', "syntax 'proto4' is not known"),
        ('edition = "2023";', "'edition' is not understood"),
        ("message A { string a = 1; } §", "line 1: '§' makes no sense here"),
        ('import "b', "makes no sense here"),
        ("/* for ever", "makes no sense here"),
        ("message A.B {}", "without dots"),
        ("message A { " * 1_000, "nested more than 32 deep"),
    ],
)
def test_what_is_no_source_is_refused_with_file_and_line(source: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=r"a\.proto") as refused:
        compile_sources({"a.proto": source})
    assert told in refused.value.message


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('syntax = "proto3"; message A { Nothing a = 1; }', "cannot be used"),
        ('syntax = "proto3"; message A { string a = 1; string b = 1; }', "cannot be used"),
        ('syntax = "proto3"; enum E { X = 1; } message A {}', "cannot be used"),
        ('import "b.proto"; message A {}', "'b.proto' is imported and is not there"),
        ('import "a.proto"; message A {}', "in a circle: a.proto"),
        ("message B {}", "there is no message 'A' in the description; there are: B"),
    ],
)
def test_what_makes_no_sense_together_is_refused(source: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_form(compile_sources({"a.proto": source}), "A")
    assert told in refused.value.message


# --- hostile descriptions and payloads


def nested(depth: int) -> DescriptorProto:
    message = inner = DescriptorProto(name="M0")
    for number in range(1, depth):
        inner = inner.nested_type.add(name=f"M{number}")
    return message


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([FileDescriptorProto(name="a", message_type=[nested(40)])], "levels of nested messages"),
        ([FileDescriptorProto(name=f"f{number}") for number in range(101)], "101 files or more; 100 is the most"),
        (
            [FileDescriptorProto(name="a", message_type=[DescriptorProto(name=f"M{n}") for n in range(2001)])],
            "2001 messages and enums",
        ),
        ([FileDescriptorProto(name="a", message_type=[DescriptorProto(name="M" * 256)])], "256 characters"),
        ([FileDescriptorProto(name="a", package="p" * 300_000)], "300"),
    ],
)
def test_descriptions_beyond_all_measure_are_not_looked_at(files, told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_form(FileDescriptorSet(file=files).SerializeToString(), "M0")
    assert told in refused.value.message


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x0a\xff\xff\xff\xff\x7f", b"\x0a\x05abc"])
def test_bytes_that_are_no_description(data: bytes) -> None:
    with pytest.raises(ConfigurationError, match="no FileDescriptorSet"):
        load_form(data, "A")


def test_googles_own_messages_are_googles_whatever_a_description_says() -> None:
    forged = FileDescriptorProto(name="google/protobuf/timestamp.proto", package="google.protobuf")
    forged.message_type.add(name="Timestamp").field.add(name="evil", number=1, type=9, label=1)
    files = FileDescriptorSet.FromString(
        compile_sources(
            {
                "a.proto": 'import "google/protobuf/timestamp.proto"; '
                "message A { optional google.protobuf.Timestamp at = 1; }"
            }
        )
    )
    files.file.append(forged)
    loaded = load_form(files.SerializeToString(), "A")
    assert loaded.to_json(loaded.from_json({"at": "2026-01-02T03:04:05Z"})) == {"at": "2026-01-02T03:04:05Z"}


def test_payloads_become_json_and_back() -> None:
    order = {"id": "a", "amount": 3, "lines": [{"name": "x", "of": {"id": "b"}}], "state": "PAID"}
    assert form().to_json(form().from_json(order)) == order


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"ids": 1}, "ids"),
        ({"amount": "many"}, "amount"),
        ({"amount": 2**40}, "amount"),
        ({"state": "GONE"}, "state"),
        ({"lines": {}}, "lines"),
        ([], "a JSON object; list was given"),
        (None, "a JSON object"),
    ],
)
def test_json_that_is_no_such_message_names_what_is_wrong(value, told: str) -> None:
    with pytest.raises(InvalidMessage, match=r"shop\.Order") as refused:
        form().from_json(value)
    assert told in refused.value.message


@pytest.mark.parametrize("value", [{"kind": float("inf")}, {"kind": "\ud800"}, {"any": {"@type": 5}}, {"any": [1]}])
def test_json_that_the_library_stumbles_over_is_refused(value) -> None:
    source = """syntax = "proto3";
import "google/protobuf/any.proto";
message Odd {
  Kind kind = 1;
  google.protobuf.Any any = 2;
}
enum Kind { NONE = 0; }
"""
    with pytest.raises(InvalidMessage, match="this is no Odd"):
        load_form(compile_sources({"odd.proto": source}), "Odd").from_json(value)


def test_how_much_is_of_fields_that_are_not_named_is_told() -> None:
    known = form().from_json({"id": "a", "lines": [{"name": "x"}]})
    assert form().unnamed_bytes(known) == 0
    # Field 100, with two bytes of text; the second time in a line.
    newer = b"\xa2\x06\x02ab"
    assert form().unnamed_bytes(known + newer) == len(newer)
    assert form().unnamed_bytes(b"\x1a\x05" + newer) == len(newer)
    assert form().to_json(known + newer) == form().to_json(known)


def test_json_too_deep_is_refused() -> None:
    value: dict = {}
    for _ in range(500):
        value = {"lines": [{"of": value}]}
    with pytest.raises(InvalidMessage):
        form().from_json(value)


@pytest.mark.parametrize("data", [b"\xff", b"\x1a\x05abc", b"\x1a\x02\x12\x00" * (MAX_DECODED_BYTES // 4 + 1)])
def test_bytes_that_are_no_such_message(data: bytes) -> None:
    with pytest.raises(UndecodableMessage):
        form().to_json(data)


def test_a_payload_nested_without_end_is_refused() -> None:
    data = b""
    for _ in range(200):
        data = b"\x12" + bytes([len(data) & 127 | 128, len(data) >> 7]) + data
        data = b"\x1a" + bytes([len(data) & 127 | 128, len(data) >> 7]) + data
    with pytest.raises(UndecodableMessage):
        form().to_json(data)


# --- the next version


@pytest.mark.parametrize(
    "change",
    [
        ("string id = 1;", "string id = 1; string more = 5; oneof pay { string card = 6; }"),
        ("int32 amount = 2;", "int64 amount = 2;"),
        ("int32 amount = 2;", 'reserved 2; reserved "amount";'),
        ("int32 amount = 2;", "optional int32 amount = 2;"),
        ("PAID = 1;", "PAID = 1; LOST = 2;"),
        ("PAID = 1;", 'reserved 1; reserved "PAID";'),
        ("string name = 1;", "string name = 1; bytes raw = 3;"),
    ],
)
def test_what_old_and_new_readers_can_live_with(change: tuple[str, str]) -> None:
    assert find_incompatibilities(form(), form(ORDER.replace(*change))) == []


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        (("int32 amount = 2;", ""), "shop.Order.amount", "write `reserved 2;`"),
        (("int32 amount = 2;", "reserved 2;"), "shop.Order.amount", 'write `reserved "amount";`'),
        (("int32 amount = 2;", "string amount = 2;"), "shop.Order.amount", "type was int32 and is string"),
        (("int32 amount = 2;", "uint32 amount = 2;"), "shop.Order.amount", "int32 and is uint32"),
        (("int32 amount = 2;", "int32 sum = 2;"), "shop.Order.sum", "was called 'amount'"),
        (("int32 amount = 2;", 'int32 amount = 2 [json_name="s"];'), "shop.Order.amount", "in JSON"),
        (("repeated Line lines", "Line lines"), "shop.Order.lines", "was repeated and is single"),
        (("string id = 1;", "oneof one { string id = 1; }"), "shop.Order.id", "was in no oneof"),
        (("PAID = 1;", ""), "shop.State.PAID", "value 1 is gone"),
        (("PAID = 1;", "SOLD = 1;"), "shop.State.PAID", "was called 'PAID'"),
        (("string name = 1;", "bytes name = 1;"), "shop.Order.Line.name", "type was string and is bytes"),
    ],
)
def test_what_would_be_misread_is_named_with_what_to_do(change: tuple[str, str], where: str, why: str) -> None:
    [found] = find_incompatibilities(form(), form(ORDER.replace(*change)))
    assert found.where == where
    assert why in found.why


def test_a_number_or_name_that_was_given_up_is_not_taken_again() -> None:
    before = form(ORDER.replace("int32 amount = 2;", 'reserved 2; reserved "amount";'))
    told = " ".join(one.why for one in find_incompatibilities(before, form()))
    assert "number 2 is reserved" in told
    assert "'amount' is reserved" in told


def test_what_is_required_stays_so_and_nothing_becomes_so() -> None:
    before = "message Order { optional string a = 1; required string b = 2; required string c = 3; }"
    after = (
        'message Order { required string a = 1; optional string b = 2; reserved 3; reserved "c"; required bool d = 4; }'
    )
    found = find_incompatibilities(form(before, "Order"), form(after, "Order"))
    assert [one.where for one in found] == ["Order.a", "Order.b", "Order.c", "Order.d"]


def test_another_message_is_no_next_version() -> None:
    [found] = find_incompatibilities(form(), form(name="shop.Order.Line"))
    assert "make a type of its own" in found.why


def test_each_of_all_incompatibilities_is_told() -> None:
    after = ORDER.replace("int32 amount = 2;", "").replace("PAID = 1;", "")
    assert len(find_incompatibilities(form(), form(after))) == 2


def test_descriptions_of_generated_code_are_good_as_well() -> None:
    files = FileDescriptorSet()
    EVENTS.CopyToProto(files.file.add())
    assert load_form(files.SerializeToString(), message_names(files.SerializeToString())[0]).name
