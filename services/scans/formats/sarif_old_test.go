package formats_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/sarif"
)

// convertOld converts a report of SARIF 1.0 or 2.0 and returns the document and the notes.
func convertOld(t *testing.T, doc string) (string, []*formats.Notes) {
	t.Helper()
	limits := sarif.DefaultLimits().Stream()
	format, err := formats.Detect(context.Background(), strings.NewReader(doc), limits,
		func() ([]formats.Format, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if format.Convert == nil {
		t.Fatalf("%s is taken for %s", doc, format.Name)
	}
	var out bytes.Buffer
	notes, err := formats.Convert(context.Background(), format, strings.NewReader(doc), limits, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), notes
}

// TestOldSARIFThatClosesNothing: a failed run, and a result or rule that cannot be read.
func TestOldSARIFThatClosesNothing(t *testing.T) {
	for members, want := range map[string]string{
		`"results":[]`:   "",
		``:               "no results property",
		`"results":null`: "no results property",
		`"results":[],"invocations":[{"toolExecutionSuccessful":false}]`:                 "did not succeed",
		`"results":[],"invocation":{"toolNotifications":[{"level":"error"}]}`:            "error about its execution",
		`"results":[],"configurationNotifications":[{"level":"error","ruleId":"R1"}]`:    "could not load a rule",
		`"results":[],"toolNotifications":[{"level":"error"}]`:                           "error about its execution",
		`"results":[],"rules":{"a":7}`:                                                   "could not be read",
		`"results":[7]`:                                                                  "could not be read",
		`"results":[],"resources":{"rules":[{"id":"a"}]},"invocations":[{"exitCode":1}]`: "",
	} {
		if members != "" {
			members = "," + members
		}
		_, notes := convertOld(t, `{"version":"2.0.0","runs":[{"tool":{"name":"t"}`+members+`}]}`)
		if len(notes) != 1 || (want == "") != (notes[0].Failure == "") || !strings.Contains(notes[0].Failure, want) {
			t.Errorf("%s: %+v, want the failure %q", members, notes[0], want)
		}
	}
}

// TestOldSARIFWithoutVersion is recognised by its members.
func TestOldSARIFWithoutVersion(t *testing.T) {
	doc, _ := convertOld(t, `{"runs":[{"tool":{"name":"t"},"rules":{"a":{"id":"a"}},"results":[{"ruleId":"a","message":"m"}]}]}`)
	if !strings.Contains(doc, `"ruleId":"a","level":"warning","message":{"text":"m"}`) {
		t.Errorf("document %s", doc)
	}
}

func FuzzOldSARIF(f *testing.F) {
	f.Add([]byte(`{"version":"1.0.0","runs":[{"tool":{"name":"t"},"results":[{"ruleId":"a","message":"m","locations":[{"resultFile":{"uri":"a"}}]}]}]}`))
	f.Add([]byte(`{"version":"2.0.0","runs":[{"tool":{"name":"t"},"files":[{"fileLocation":{"uri":"a"}}],"results":[{"message":{"text":"m"}}]}]}`))
	limits := sarif.Limits{MaxBytes: 1 << 20, MaxDepth: 50, MaxValues: 1000, MaxResultBytes: 4 << 10, MaxTokenBytes: 2 << 10}.Stream()
	f.Fuzz(func(t *testing.T, doc []byte) {
		for _, name := range []string{"sarif-1.0", "sarif-2.0"} {
			format, _ := formats.Named(name)
			var out bytes.Buffer
			if _, err := formats.Convert(context.Background(), format, bytes.NewReader(doc), limits, &out, io.Discard); err == nil && !json.Valid(out.Bytes()) {
				t.Fatalf("invalid JSON: %q", out.String())
			}
		}
	})
}
