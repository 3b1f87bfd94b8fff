package blob_test

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
)

// hashes draws typical hashes, unusual ones, and texts that begin like a hash.
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

// TestEncode: the stored form is never larger than the content, and decodes to it. Content that was stored unpacked
// decodes, too.
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
			decodes(t, encoded, content)
		}
	})
}

// decodes checks that stored content decodes, alone and in a page, and that later use of the buffer does not change it.
func decodes(t interface{ Fatalf(string, ...any) }, stored []byte, want *storev1.FindingContent) {
	if got, err := blob.Decode(stored); err != nil || !proto.Equal(got, want) {
		t.Fatalf("got %v, want %v (%v)", got, want, err)
	}
	var page blob.Page
	var contents [3]storev1.FindingContent
	for i := range contents {
		used := slices.Clone(stored)
		if err := page.Decode(used, &contents[i]); err != nil {
			t.Fatalf("in a page: %v", err)
		}
		clear(used)
	}
	for i := range contents {
		if got := &contents[i]; !proto.Equal(got, want) {
			t.Fatalf("in a page: got %v, want %v", got, want)
		}
	}
}

// TestRetired: a retired field is ignored, and not stored again.
func TestRetired(t *testing.T) {
	content := &storev1.FindingContent{Message: "unhandled", Commit: "89abcdef0123456789abcdef0123456789abcdef"}
	stored, err := blob.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	before := append(protowire.AppendBytes(protowire.AppendTag(nil, 33, protowire.BytesType), []byte{1 << 3, 5}), stored...)
	read, err := blob.Decode(before)
	if err != nil || read.GetMessage() != content.GetMessage() || read.GetCommit() != content.GetCommit() {
		t.Fatalf("got %v (%v), want %v", read, err, content)
	}
	if again, err := blob.Encode(read); err != nil || !bytes.Equal(again, stored) {
		t.Errorf("stored again is %x (%v), want %x", again, err, stored)
	}
}

// TestStoredBytes: the stored form is fixed byte by byte, so that later versions can read it.
func TestStoredBytes(t *testing.T) {
	content := &storev1.FindingContent{
		SyntacticId: "00112233445566778899aabbccddeeff", MatchBasedId: "0123456789abcdef0123456789abcdef_12", Commit: "89abcdef0123456789abcdef0123456789abcdef",
		PatternHash: "fedcba9876543210fedcba98765432100", CodeHash: "00ff00ff00ff00ff00ff00ff00ff00ffZ",
	}
	want := "9202" + "11" + "10" + "00112233445566778899aabbccddeeff" + // field and type, length, packed length, packed bytes, rest
		"9a02" + "14" + "10" + "0123456789abcdef0123456789abcdef" + "5f3132" +
		"a202" + "15" + "14" + "89abcdef0123456789abcdef0123456789abcdef" +
		"aa02" + "12" + "10" + "fedcba9876543210fedcba9876543210" + "30" +
		"b202" + "12" + "10" + "00ff00ff00ff00ff00ff00ff00ff00ff" + "5a"
	stored, err := blob.Encode(content)
	if err != nil || hex.EncodeToString(stored) != want {
		t.Errorf("stored are\n%x (%v), want\n%s", stored, err, want)
	}
	earlier, err := hex.DecodeString(want)
	if err != nil {
		t.Fatal(err)
	}
	decodes(t, earlier, content)
}

// TestBrokenText: a truncated packed text is an error, not another text.
func TestBrokenText(t *testing.T) {
	for _, packed := range [][]byte{{}, {1}, {200, 1, 2}} {
		encoded, err := proto.Marshal(&storev1.FindingContent{PackedCommit: packed})
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, 0xa2, 2, 1, 200)
		if got, err := blob.Decode(encoded); err == nil {
			t.Errorf("%v is read as %v", packed, got)
		}
		if err := new(blob.Page).Decode(encoded, &storev1.FindingContent{}); err == nil {
			t.Errorf("%v is read in a page", packed)
		}
	}
}

// TestOnlyDecodeReadsContents: decoding the stored form as a plain FindingContent would silently lose its hashes. So no
// other function of the program has both an empty content and a call that fills it.
func TestOnlyDecodeReadsContents(t *testing.T) {
	empty := regexp.MustCompile(`storev1\.FindingContent\{\}|new\(storev1\.FindingContent\)|var \w+ storev1\.FindingContent\b`)
	may := map[string]bool{"findings/blob/blob.go": true, "scans/ingest/journal.go": true} // not stored yet
	services := os.DirFS("../..")
	read := 0
	err := fs.WalkDir(services, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		read++
		source, err := fs.ReadFile(services, path)
		for _, function := range strings.Split(string(source), "\nfunc ") {
			if reads := empty.MatchString(function) && strings.Contains(function, "Unmarshal"); reads && !may[path] {
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

// TestPageLeavesOutLargeFields: a list of findings with long data flows does not keep the flows in memory.
func TestPageLeavesOutLargeFields(t *testing.T) {
	content := &storev1.FindingContent{Message: "m", DataflowTrace: make([]byte, 100<<10), Metadata: make([]byte, 10<<10), Context: make([]byte, 60<<10), LogicalLocation: "f"}
	stored, err := blob.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	var page blob.Page
	got, want := &storev1.FindingContent{}, &storev1.FindingContent{Message: "m", LogicalLocation: "f"}
	if err := page.Decode(stored, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("got %d bytes (%v)", proto.Size(got), err)
	}
}
