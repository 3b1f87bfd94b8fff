package blob_test

import (
	"encoding/hex"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
)

// hashes draws texts as scanners give them, as nobody gives them, and texts that begin like a hash.
func hashes() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`([0-9a-f]{2}){0,70}(_[0-9]{1,3})?`), rapid.StringMatching(`[0-9a-f]{500,530}`),
		rapid.StringMatching(`[0-9a-fA-F]{10,20}[g-z]?`), rapid.String())
}

func drawContent(t *rapid.T) *storev1.FindingContent {
	hash := hashes()
	return &storev1.FindingContent{
		Message: rapid.String().Draw(t, "message"), IsBlocking: rapid.Bool().Draw(t, "blocking"), Metadata: rapid.SliceOf(rapid.Byte()).Draw(t, "metadata"),
		SyntacticId: hash.Draw(t, "syntactic id"), MatchBasedId: hash.Draw(t, "match-based id"), Commit: hash.Draw(t, "commit"),
		PatternHash: hash.Draw(t, "pattern hash"), CodeHash: hash.Draw(t, "code hash"),
	}
}

// TestEncode: what is stored is never larger than the content, and is read as it was, also when it was stored as it is.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		plain, err := proto.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := blob.Encode(content)
		if err != nil || len(stored) > len(plain) {
			t.Fatalf("%d bytes are stored as %d (%v)", len(plain), len(stored), err)
		}
		for _, encoded := range [][]byte{stored, plain} {
			if got, err := blob.Decode(encoded); err != nil || !proto.Equal(got, content) {
				t.Fatalf("got %v, want %v (%v)", got, content, err)
			}
		}
	})
}

// TestStoredBytes: what is stored stays readable by the versions to come, byte by byte.
func TestStoredBytes(t *testing.T) {
	content := &storev1.FindingContent{
		SyntacticId: "00112233445566778899aabbccddeeff", MatchBasedId: "0123456789abcdef0123456789abcdef_12", Commit: "89abcdef0123456789abcdef0123456789abcdef",
		PatternHash: "fedcba9876543210fedcba98765432100", CodeHash: "00ff00ff00ff00ff00ff00ff00ff00ffZ",
	}
	want := "9202" + "11" + "10" + "00112233445566778899aabbccddeeff" + // number and kind of field, length, number of packed bytes, these, and the rest
		"9a02" + "14" + "10" + "0123456789abcdef0123456789abcdef" + "5f3132" +
		"a202" + "15" + "14" + "89abcdef0123456789abcdef0123456789abcdef" +
		"aa02" + "12" + "10" + "fedcba9876543210fedcba9876543210" + "30" +
		"b202" + "12" + "10" + "00ff00ff00ff00ff00ff00ff00ff00ff" + "5a"
	stored, err := blob.Encode(content)
	if err != nil || hex.EncodeToString(stored) != want {
		t.Errorf("stored are\n%x (%v), want\n%s", stored, err, want)
	}
	bytes, err := hex.DecodeString(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := blob.Decode(bytes); err != nil || !proto.Equal(got, content) {
		t.Errorf("got %v (%v), want %v", got, err, content)
	}
}

// TestBrokenText: a packed text that is cut off is an error, not another text.
func TestBrokenText(t *testing.T) {
	for _, packed := range [][]byte{{}, {1}, {200, 1, 2}} {
		encoded, err := proto.Marshal(&storev1.FindingContent{PackedCommit: packed})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := blob.Decode(append(encoded, 0xa2, 2, 1, 200)); err == nil {
			t.Errorf("%v is read as %v", packed, got)
		}
		if got, err := blob.AppendText(nil, protowire.BytesType, protowire.AppendBytes(nil, packed)); err == nil {
			t.Errorf("%v is the text %q", packed, got)
		}
	}
	if got, err := blob.AppendText(nil, protowire.Fixed32Type, []byte{2, 1, 0xab, 0}); err == nil {
		t.Errorf("a number is the text %q", got)
	}
}

// TestBrokenFacts: facts that are cut off are none.
func TestBrokenFacts(t *testing.T) {
	content := protowire.AppendBytes(protowire.AppendTag(nil, 33, protowire.BytesType), []byte{1 << 3, 5, 2 << 3, 0xff})
	facts := blob.Facts{ProjectID: 7, Ref: []byte("main")}
	if blob.ParseFacts(content, &facts) || !reflect.DeepEqual(facts, blob.Facts{}) {
		t.Errorf("read are %+v, want none", facts)
	}
}

// TestOnlyDecodeReadsContents: a reader that takes what is stored for a FindingContent as it is would miss its hashes, and nobody would
// notice. So no other function of the program has both an empty content and something to fill it.
func TestOnlyDecodeReadsContents(t *testing.T) {
	empty := regexp.MustCompile(`storev1\.FindingContent\{\}|new\(storev1\.FindingContent\)|var \w+ storev1\.FindingContent\b`)
	may := map[string]bool{"findings/blob/blob.go": true, "scans/ingest/journal.go": true} // the journal holds contents that are not stored yet
	services := os.DirFS("../..")
	read := 0
	err := fs.WalkDir(services, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		read++
		source, err := fs.ReadFile(services, path)
		for _, function := range strings.Split(string(source), "\nfunc ") {
			if reads := empty.MatchString(function) && strings.Contains(function, "Unmarshal("); reads && !may[path] {
				t.Errorf("%s reads a FindingContent without blob.Decode: func %s", path, strings.SplitN(function, "\n", 2)[0])
			} else if reads {
				delete(may, path)
			}
		}
		return err
	})
	if err != nil || read < 100 || len(may) > 0 {
		t.Errorf("%d files were read (%v); not found is what may read contents: %v", read, err, may)
	}
}

// TestStamp: the stamped content is the content with the last facts, whatever they are and however often it is stamped.
func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		encoded, err := proto.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		number := rapid.Int64()
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			content.Facts = &storev1.FindingFacts{
				ProjectId: number.Draw(t, "project"), RuleId: number.Draw(t, "rule"), FirstSeenScanId: number.Draw(t, "scan"),
				CreatedAt: number.Draw(t, "at"), Ref: rapid.String().Draw(t, "ref"), Severity: rapid.String().Draw(t, "severity"),
			}
			encoded = blob.Stamp(encoded, content.GetFacts())
		}
		parsed := blob.Facts{Ref: []byte("refs/heads/main"), RuleID: 7} // of another row
		want := blob.Facts{
			ProjectID: content.GetFacts().GetProjectId(), RuleID: content.GetFacts().GetRuleId(), FirstSeenScanID: content.GetFacts().GetFirstSeenScanId(),
			CreatedAt: content.GetFacts().GetCreatedAt(), Ref: []byte(content.GetFacts().GetRef()), Severity: []byte(content.GetFacts().GetSeverity()),
		}
		if want.ProjectID == 0 {
			want = blob.Facts{}
		}
		if ok := blob.ParseFacts(encoded, &parsed); ok != (want.ProjectID != 0) || !reflect.DeepEqual(parsed, want) {
			t.Fatalf("parsed %v, want %v", parsed, want)
		}
		if got, err := blob.Decode(encoded); err != nil || !proto.Equal(got, content) {
			t.Fatalf("got %v, want %v (%v)", got, content, err)
		}
	})
}
