package apitest

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "rewrite golden files; the contract must say so")

// times matches times in exactly the contract's format. Other formats stay and fail the comparison.
var times = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"`)

// Golden compares a body with the exact bytes of testdata/<name>.golden. Current times are replaced first.
func Golden(t testing.TB, name, body string) {
	t.Helper()
	got := times.ReplaceAllString(body, `"2026-05-04T10:20:30.123456Z"`)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n got %s\nwant %s", path, got, want)
	}
}

// Same requires that a gRPC response equals the HTTP body.
func Same(t testing.TB, response proto.Message, body string) {
	t.Helper()
	appender, ok := response.(interface{ AppendJSON([]byte) []byte })
	if !ok {
		t.Fatalf("%T has no JSON codec", response)
	}
	if got := string(appender.AppendJSON(nil)); got != body {
		t.Errorf("gRPC and HTTP differ:\ngRPC %s\nHTTP %s", got, body)
	}
}
