package codec_test

import (
	"encoding/json"
	"math"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest/testpb"
)

// at is 2026-05-04T10:20:30.123456Z with 789 nanoseconds that the codec truncates.
var at = &timestamppb.Timestamp{Seconds: 1777890030, Nanos: 123456789}

const zeroScalars = `{"aDouble":0,"aFloat":0,"anInt32":0,"anInt64":"0","aUint32":0,"aUint64":"0","aSint32":0,` +
	`"aSint64":"0","aFixed32":0,"aFixed64":"0","aSfixed32":0,"aSfixed64":"0","aBool":false,"aString":"","someBytes":""}`

func TestAppendJSON(t *testing.T) {
	groups := map[string]map[string]struct {
		message jsonappend.Appender
		want    string
	}{
		"scalars":    scalarCases(),
		"lists":      collectionCases(),
		"well-known": wellKnownCases(),
		"options":    optionCases(),
		"structure":  structureCases(),
	}
	for group, cases := range groups {
		for name, tc := range cases {
			t.Run(group+"/"+name, func(t *testing.T) {
				got := string(tc.message.AppendJSON([]byte("prefix")))
				if want := "prefix" + tc.want; got != want {
					t.Errorf("AppendJSON\n got %s\nwant %s", got, want)
				}
				if !json.Valid([]byte(got[len("prefix"):])) {
					t.Errorf("not JSON: %s", got)
				}
			})
		}
	}
}

type cases = map[string]struct {
	message jsonappend.Appender
	want    string
}

func scalarCases() cases {
	return cases{
		"nil":       {(*testpb.Scalars)(nil), `{}`},
		"zero":      {&testpb.Scalars{}, zeroScalars},
		"no fields": {&testpb.Tree_Leaf{}, `{}`},
		"limits": {&testpb.Scalars{
			ADouble: math.MaxFloat64, AFloat: math.SmallestNonzeroFloat32,
			AnInt32: math.MinInt32, AnInt64: math.MinInt64, AUint32: math.MaxUint32, AUint64: math.MaxUint64,
			ASint32: math.MaxInt32, ASint64: math.MaxInt64, AFixed32: 1, AFixed64: math.MaxUint64,
			ASfixed32: -1, ASfixed64: math.MinInt64, ABool: true,
			AString: "a<b>&\"\\\b\f\n\r\t\x00\x1f\x7f é\u2028😀\xff\xfe", SomeBytes: []byte{0xfb, 0xff}, Color: testpb.Color_COLOR_BLUE,
		}, `{"aDouble":1.7976931348623157e+308,"aFloat":1e-45,"anInt32":-2147483648,"anInt64":"-9223372036854775808",` +
			`"aUint32":4294967295,"aUint64":"18446744073709551615","aSint32":2147483647,"aSint64":"9223372036854775807",` +
			`"aFixed32":1,"aFixed64":"18446744073709551615","aSfixed32":-1,"aSfixed64":"-9223372036854775808","aBool":true,` +
			`"aString":"a<b>&\"\\\b\f\n\r\t\u0000\u001f` + "\x7f é\u2028😀\uFFFD\uFFFD" + `","someBytes":"+/8=","color":"COLOR_BLUE"}`},
		"optional unset": {&testpb.Optionals{}, `{}`},
		"optional zero": {&testpb.Optionals{
			ADouble: proto.Float64(0), AFloat: proto.Float32(0), AnInt32: proto.Int32(0), AnInt64: proto.Int64(0),
			AUint32: proto.Uint32(0), AUint64: proto.Uint64(0), ABool: proto.Bool(false), AString: proto.String(""),
			SomeBytes: []byte{}, Color: testpb.Color_COLOR_UNSPECIFIED.Enum(),
		}, `{"aDouble":0,"aFloat":0,"anInt32":0,"anInt64":"0","aUint32":0,"aUint64":"0","aBool":false,"aString":"","someBytes":""}`},
		"special floats": {&testpb.Lists{
			Doubles: []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e21, 1e-7, 123456.789},
			Floats:  []float32{1e21, 1e-7, 0.1},
		}, `{"doubles":["NaN","Infinity","-Infinity",-0,1e+21,1e-7,123456.789],"floats":[1e+21,1e-7,0.1],"int32s":[],` +
			`"int64s":[],"uint32s":[],"uint64s":[],"bools":[],"strings":[],"byteStrings":[],"colors":[],"scalars":[],` +
			`"times":[],"nulls":[],"rules":[]}`},
	}
}

func collectionCases() cases {
	return cases{
		"lists": {&testpb.Lists{
			Int32S: []int32{-1, 0}, Int64S: []int64{-1}, Uint32S: []uint32{1}, Uint64S: []uint64{2}, Bools: []bool{true, false},
			Strings: []string{"", "x"}, ByteStrings: [][]byte{nil, {0}},
			Colors:  []testpb.Color{testpb.Color_COLOR_UNSPECIFIED, testpb.Color_COLOR_CRIMSON, 2},
			Scalars: []*testpb.Scalars{nil, {}}, Times: []*timestamppb.Timestamp{at, nil},
			Nulls: []structpb.NullValue{0}, Rules: []*annotations.HttpRule{{Selector: "s"}},
		}, `{"doubles":[],"floats":[],"int32s":[-1,0],"int64s":["-1"],"uint32s":[1],"uint64s":["2"],"bools":[true,false],` +
			`"strings":["","x"],"byteStrings":["","AA=="],"colors":["COLOR_UNSPECIFIED","COLOR_RED",2],` +
			`"scalars":[{},` + zeroScalars + `],"times":["2026-05-04T10:20:30.123456Z","1970-01-01T00:00:00.000000Z"],` +
			`"nulls":[null],"rules":[{"selector":"s","body":"","responseBody":"","additionalBindings":[]}]}`},
		"maps sorted": {&testpb.Maps{
			Strings: map[string]string{"b": "2", "a": "1", "": "0"}, Int64S: map[int32]int64{10: 1, 9: 2, -1: 3},
			Uint64S: map[int64]uint64{math.MinInt64: 1}, Doubles: map[uint32]float64{math.MaxUint32: 0.5},
			ByteStrings: map[uint64][]byte{math.MaxUint64: {1}}, Bools: map[bool]bool{true: false, false: true},
			Colors:  map[string]testpb.Color{"zero": 0, "red": 1, "other": -7},
			Scalars: map[string]*testpb.Scalars{"nil": nil}, Times: map[string]*timestamppb.Timestamp{"t": at},
			Values: map[int64]*structpb.Value{1: structpb.NewNumberValue(1), 0: structpb.NewNullValue()},
		}, `{"strings":{"":"0","a":"1","b":"2"},"int64s":{"-1":"3","9":"2","10":"1"},"uint64s":{"-9223372036854775808":"1"},` +
			`"doubles":{"4294967295":0.5},"byteStrings":{"18446744073709551615":"AQ=="},"bools":{"false":true,"true":false},` +
			`"colors":{"other":-7,"red":"COLOR_RED","zero":"COLOR_UNSPECIFIED"},"scalars":{"nil":{}},` +
			`"times":{"t":"2026-05-04T10:20:30.123456Z"},"values":{"0":null,"1":1}}`},
		"maps empty": {&testpb.Maps{}, `{"strings":{},"int64s":{},"uint64s":{},"doubles":{},"byteStrings":{},"bools":{},` +
			`"colors":{},"scalars":{},"times":{},"values":{}}`},
	}
}

func wellKnownCases() cases {
	packed, err := anypb.New(&testpb.Tree{Kind: testpb.Tree_KIND_LEAF})
	if err != nil {
		panic(err)
	}
	packedLeaf, err := anypb.New(&testpb.Tree_Leaf{})
	if err != nil {
		panic(err)
	}
	packedDuration, err := anypb.New(durationpb.New(1500))
	if err != nil {
		panic(err)
	}
	return cases{
		"unset": {&testpb.WellKnown{}, `{}`},
		"set": {&testpb.WellKnown{
			Timestamp: at, Duration: &durationpb.Duration{Seconds: -1, Nanos: -500000000},
			Struct: &structpb.Struct{Fields: map[string]*structpb.Value{
				"b": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewBoolValue(true)}}),
				"a": structpb.NewStructValue(&structpb.Struct{}),
			}},
			Value: structpb.NewStringValue("<v>"), ListValue: &structpb.ListValue{},
			FieldMask: &fieldmaskpb.FieldMask{Paths: []string{"user.display_name", "photo"}},
			Empty:     &emptypb.Empty{}, Any: packed, BoolValue: wrapperspb.Bool(false), StringValue: wrapperspb.String(""),
			BytesValue: wrapperspb.Bytes([]byte("x")), Int32Value: wrapperspb.Int32(-3), Uint32Value: wrapperspb.UInt32(3),
			Int64Value: wrapperspb.Int64(-4), Uint64Value: wrapperspb.UInt64(4), FloatValue: wrapperspb.Float(0.5),
			DoubleValue: wrapperspb.Double(0.25),
			HttpRule:    &annotations.HttpRule{Pattern: &annotations.HttpRule_Get{Get: "/<x>"}},
		}, `{"timestamp":"2026-05-04T10:20:30.123456Z","duration":"-1.500s","struct":{"a":{},"b":[true]},"value":"<v>",` +
			`"listValue":[],"fieldMask":"user.displayName,photo","empty":{},` +
			`"any":{"@type":"type.googleapis.com/palisade.codectest.v1.Tree","kind":"KIND_LEAF","more":[]},` +
			`"boolValue":false,"stringValue":"","bytesValue":"eA==","int32Value":-3,"uint32Value":3,"int64Value":"-4",` +
			`"uint64Value":"4","floatValue":0.5,"doubleValue":0.25,` +
			`"httpRule":{"selector":"","get":"/<x>","body":"","responseBody":"","additionalBindings":[]}}`},
		"any without members": {&testpb.WellKnown{Any: packedLeaf},
			`{"any":{"@type":"type.googleapis.com/palisade.codectest.v1.Tree.Leaf"}}`},
		"any of a well-known type": {&testpb.WellKnown{Any: packedDuration},
			`{"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"0.000001500s"}}`},
		"any of an unknown type": {&testpb.WellKnown{Any: &anypb.Any{TypeUrl: "x/no.Such", Value: []byte("?")}},
			`{"any":{"@type":"x/no.Such"}}`},
		"any empty": {&testpb.WellKnown{Any: &anypb.Any{}}, `{"any":{}}`},
		"value without kind": {&testpb.WellKnown{
			Value: &structpb.Value{}, ListValue: &structpb.ListValue{Values: []*structpb.Value{nil, structpb.NewNumberValue(math.NaN())}},
		}, `{"value":null,"listValue":[null,null]}`},
		"times out of range": {&testpb.WellKnown{
			Timestamp: &timestamppb.Timestamp{Seconds: math.MaxInt64}, Duration: &durationpb.Duration{Seconds: math.MinInt64},
		}, `{"timestamp":"9999-12-31T23:59:59.999999Z","duration":"-315576000000s"}`},
		"foreign message with invalid UTF-8": {&testpb.WellKnown{HttpRule: &annotations.HttpRule{Selector: "\xff"}}, `{"httpRule":{}}`},
	}
}

func optionCases() cases {
	return cases{
		"numbers zero": {&testpb.Numbers{}, `{"plain":0,"list":[],"byName":{},"wrappedList":[],"quoted":"0"}`},
		"numbers": {&testpb.Numbers{
			Plain: math.MinInt64, Maybe: proto.Uint64(math.MaxUint64), List: []uint64{1, 2}, ByName: map[string]int64{"n": -1},
			Wrapped: wrapperspb.Int64(-5), WrappedList: []*wrapperspb.UInt64Value{wrapperspb.UInt64(6)}, Quoted: 7,
		}, `{"plain":-9223372036854775808,"maybe":18446744073709551615,"list":[1,2],"byName":{"n":-1},"wrapped":-5,` +
			`"wrappedList":[6],"quoted":"7"}`},
		"unset": {&testpb.Unset{}, `{"nullString":null,"nullBytes":null,"nullColor":null,"nullList":null,"nullMap":null,` +
			`"nullMessage":null,"nullTime":null,"nullOptional":null,"nullOptionalColor":null,"objectMessage":{},` +
			`"objectStruct":{},"objectMap":{},"objectForeign":{}}`},
		"set": {&testpb.Unset{
			OmitString: "s", OmitBool: true, OmitDouble: 1, OmitList: []string{"l"}, OmitMap: map[string]string{"k": "v"},
			OmitMessage: &testpb.Scalars{}, NullString: "n", NullBytes: []byte("b"), NullColor: testpb.Color_COLOR_RED,
			NullList: []testpb.Color{0}, NullMap: map[string]string{"": ""}, NullMessage: &testpb.Tree{}, NullTime: at,
			NullOptional: proto.Int64(0), NullOptionalColor: testpb.Color_COLOR_UNSPECIFIED.Enum(), ObjectMessage: &testpb.Tree{},
			ObjectStruct: &structpb.Struct{}, ObjectMap: map[string]string{"a": "b"},
		}, `{"omitString":"s","omitBool":true,"omitDouble":1,"omitList":["l"],"omitMap":{"k":"v"},"omitMessage":` + zeroScalars +
			`,"nullString":"n","nullBytes":"Yg==","nullColor":"COLOR_RED","nullList":["COLOR_UNSPECIFIED"],"nullMap":{"":""},` +
			`"nullMessage":{"more":[]},"nullTime":"2026-05-04T10:20:30.123456Z","nullOptional":0,"nullOptionalColor":null,` +
			`"objectMessage":{"more":[]},"objectStruct":{},"objectMap":{"a":"b"},"objectForeign":{}}`},
		"variant none":    {&testpb.Animal{Name: "n", Legs: 4, Wings: "w", Tricks: []string{"t"}, Ages: []int64{1}}, `{"name":"n","ages":["1"]}`},
		"variant unknown": {&testpb.Animal{Species: "fish", Legs: 4}, `{"name":"","ages":[]}`},
		"variant cat":     {&testpb.Animal{Species: "cat", Tricks: []string{"t"}}, `{"name":"","legs":0,"ages":[]}`},
		"variant dog":     {&testpb.Animal{Species: "dog", Legs: 4, Wings: "w"}, `{"name":"","legs":4,"tricks":[],"friend":{},"ages":[]}`},
		"variant bird": {&testpb.Animal{Species: "bird", Legs: 2, Friend: &testpb.Animal{Species: "cat", Ages: []int64{2}}, Ages: []int64{7}},
			`{"name":"","wings":null,"friend":{"name":"","legs":0,"ages":["2"]},"ages":[7]}`},
	}
}

func structureCases() cases {
	null := `"orNull":null,`
	return cases{
		"oneof unset":   {&testpb.Choice{}, `{"before":"",` + null + `"after":""}`},
		"oneof text":    {&testpb.Choice{Kind: &testpb.Choice_Text{}}, `{"before":"","text":"",` + null + `"after":""}`},
		"oneof number":  {&testpb.Choice{Kind: &testpb.Choice_Number{Number: 1}}, `{"before":"","number":1,` + null + `"after":""}`},
		"oneof color":   {&testpb.Choice{Kind: &testpb.Choice_Color{Color: 3}}, `{"before":"","color":"COLOR_BLUE",` + null + `"after":""}`},
		"oneof color 0": {&testpb.Choice{Kind: &testpb.Choice_Color{}}, `{"before":"",` + null + `"after":""}`},
		"oneof message": {&testpb.Choice{Kind: &testpb.Choice_Scalars{}}, `{"before":"","scalars":{},` + null + `"after":""}`},
		"oneof null":    {&testpb.Choice{Kind: &testpb.Choice_Nothing{}}, `{"before":"","nothing":null,` + null + `"after":""}`},
		"oneof raw":     {&testpb.Choice{Kind: &testpb.Choice_Raw{}}, `{"before":"","raw":"",` + null + `"after":""}`},
		"oneof or null": {&testpb.Choice{Kind: &testpb.Choice_OrNull{OrNull: "x"}}, `{"before":"","orNull":"x","after":""}`},
		"oneof nil":     {&testpb.Choice{Kind: (*testpb.Choice_Text)(nil)}, `{"before":"",` + null + `"after":""}`},
		"recursive": {&testpb.Tree{
			Left: &testpb.Tree{Kind: testpb.Tree_KIND_LEAF, Leaf: &testpb.Tree_Leaf{}}, More: []*testpb.Tree{{Kind: 9}},
		}, `{"left":{"kind":"KIND_LEAF","more":[],"leaf":{}},"more":[{"kind":9,"more":[]}]}`},
		"names": {&testpb.Names{SnakeCaseKept: "1", CamelCase: "2", Odd: "3", Type: "4", B: "5", Start: "6"},
			`{"snake_case_kept":"1","camelCase":"2","a \"quoted\" name with a ` + "`" + ` and \n":"3","type":"4","b":"5","start":"6"}`},
	}
}
