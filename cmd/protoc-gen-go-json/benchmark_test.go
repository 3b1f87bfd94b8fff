package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest/testpb"
)

// page returns a response like the findings list: 100 elements of about 1 kB.
func page() *testpb.Page {
	at := timestamppb.New(time.Date(2026, 5, 4, 10, 20, 30, 123456789, time.UTC))
	page := new(testpb.Page)
	for i := range 100 {
		page.Items = append(page.Items, &testpb.Item{
			Id: int64(i) + 1e9, Ref: "refs/heads/main", Name: "go.lang.security.injection.tainted-sql-string",
			Message:  strings.Repeat("User input reaches a \"query\" without being escaped. ", 8),
			Severity: "high", CreatedAt: at, UpdatedAt: at, Categories: []string{"security", "correctness"},
			Scalars: &testpb.Scalars{AnInt32: 7, AnInt64: 8, ABool: true, AString: "src/main/db/query.go"},
			Color:   testpb.Color_COLOR_BLUE, Url: "https://git.example.com/acme/web/-/blob/main/src/db/query.go#L42", Score: 0.875,
		})
	}
	return page
}

func BenchmarkAppendJSON(b *testing.B) {
	message := page()
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer = message.AppendJSON(buffer[:0])
	}
	b.SetBytes(int64(len(buffer)))
}

func BenchmarkProtoJSON(b *testing.B) {
	message := page()
	options := protojson.MarshalOptions{EmitDefaultValues: true}
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buffer, err = options.MarshalAppend(buffer[:0], message); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buffer)))
}
