package jsonappend_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
)

func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\/<>&", "\x00\x1f\x7f\b\f\n\r\t", "é\u2028\u2029😀", "\xff", "a\xe2\x28\xa1", "\uFFFD"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := jsonappend.String(nil, s)
		if !utf8.Valid(got) {
			t.Fatalf("%q: not UTF-8: %q", s, got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %q: %v", s, got, err)
		}
		// Ranging over a string replaces each invalid byte by U+FFFD: the same rule.
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q: read back as %q, want %q", s, back, want)
		}
		if utf8.ValidString(s) {
			if want := canonical(t, wrapperspb.String(s)); !bytes.Equal(got, want) {
				t.Fatalf("%q: got %q, protojson gives %q", s, got, want)
			}
		}
	})
}

func FuzzDouble(f *testing.F) {
	for _, seed := range []float64{0, 1, -1.5, 1e21, 1e20, 1e-6, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if got, want := jsonappend.Double(nil, v), canonical(t, wrapperspb.Double(v)); !bytes.Equal(got, want) {
			t.Errorf("Double(%g): got %s, protojson gives %s", v, got, want)
		}
		single := float32(v)
		if got, want := jsonappend.Float(nil, single), canonical(t, wrapperspb.Float(single)); !bytes.Equal(got, want) {
			t.Errorf("Float(%g): got %s, protojson gives %s", single, got, want)
		}
	})
}

func TestTimestampFollowsTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stamp := &timestamppb.Timestamp{
			Seconds: rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"),
			Nanos:   rapid.Int32Range(0, 999999999).Draw(t, "nanos"),
		}
		want := `"` + stamp.AsTime().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z") + `"`
		if got := string(jsonappend.Timestamp(nil, stamp)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func TestTimestampIsAlwaysReadable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stamp := &timestamppb.Timestamp{Seconds: rapid.Int64().Draw(t, "seconds"), Nanos: rapid.Int32().Draw(t, "nanos")}
		got := jsonappend.Timestamp(nil, stamp)
		if err := protojson.Unmarshal(got, new(timestamppb.Timestamp)); err != nil {
			t.Fatalf("%v gave %s: %v", stamp, got, err)
		}
	})
}

func TestDuration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &durationpb.Duration{Seconds: rapid.Int64().Draw(t, "seconds"), Nanos: rapid.Int32().Draw(t, "nanos")}
		got := jsonappend.Duration(nil, d)
		if err := protojson.Unmarshal(got, new(durationpb.Duration)); err != nil {
			t.Fatalf("%v gave %s: %v", d, got, err)
		}
		if want, err := protojson.Marshal(d); err == nil && !bytes.Equal(got, want) {
			t.Fatalf("got %s, protojson gives %s", got, want)
		}
	})
}

func TestDurationFractions(t *testing.T) {
	for nanos, want := range map[int32]string{
		0: `"1s"`, 500000000: `"1.500s"`, 1000: `"1.000001s"`, 1: `"1.000000001s"`, -5: `"1s"`, math.MaxInt32: `"1.999999999s"`,
	} {
		if got := string(jsonappend.Duration(nil, &durationpb.Duration{Seconds: 1, Nanos: nanos})); got != want {
			t.Errorf("nanos %d: got %s, want %s", nanos, got, want)
		}
	}
}

func TestFieldMask(t *testing.T) {
	for _, paths := range [][]string{nil, {"a"}, {"a_b.c_d", "e"}, {"with_1_digit"}} {
		mask := &fieldmaskpb.FieldMask{Paths: paths}
		got := jsonappend.FieldMask(nil, mask)
		if want, err := protojson.Marshal(mask); err == nil && !bytes.Equal(got, want) {
			t.Errorf("%v: got %s, protojson gives %s", paths, got, want)
		}
	}
}

func TestValuesDoNotAllocate(t *testing.T) {
	buffer := make([]byte, 0, 256)
	stamp := timestamppb.New(time.Date(2026, 5, 4, 10, 20, 30, 123456789, time.UTC))
	allocations := testing.AllocsPerRun(100, func() {
		b := jsonappend.String(buffer, "a \"quoted\" é string")
		b = jsonappend.Timestamp(b, stamp)
		b = jsonappend.QuotedInt64(b, math.MinInt64)
		b = jsonappend.Bytes(b, []byte("bytes"))
		jsonappend.Double(b, 1.5)
	})
	if allocations != 0 {
		t.Errorf("%v allocations, want none", allocations)
	}
}

func canonical(t *testing.T, m proto.Message) []byte {
	t.Helper()
	encoded, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
