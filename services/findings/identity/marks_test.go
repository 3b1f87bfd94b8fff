package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/findings/identity"
)

// marked is a result without code.
func marked(path string, line int, logical string, fingerprints ...string) identity.Text {
	return identity.Text{Rule: "a", Path: path, Line: line, Message: "it can crash", Logical: logical, Fingerprints: fingerprints}
}

func TestFingerprintsAndLogicalLocations(t *testing.T) {
	best := func(t identity.Text, print string) identity.Text { t.ToolFingerprint = print; return t }
	code := func(t identity.Text, code string) identity.Text { t.Snippet = code; return t }
	kind := func(kind string, t identity.Text) identity.Text { t.LogicalKind = kind; return t }
	const bucket = `resource "aws_s3_bucket" "%s" { acl = "public-read" }`
	said := func(t identity.Text, message string) identity.Text { t.Message = message; return t }
	for name, c := range map[string]struct {
		known, results []identity.Text
		want           string
	}{
		"the first of two instances is fixed": {
			known:   []identity.Text{marked("f", 9, "", "id:1"), marked("f", 9, "", "id:2")},
			results: []identity.Text{marked("f", 9, "", "id:2")},
			want:    "1 message",
		},
		"another instance": {
			known:   []identity.Text{marked("f", 9, "", "id:1")},
			results: []identity.Text{marked("f", 9, "", "id:2")},
			want:    "new",
		},
		"another instance with the same code": {
			known:   []identity.Text{code(best(marked("f", 9, ""), "id:1"), md5)},
			results: []identity.Text{code(best(marked("f", 9, ""), "id:2"), md5)},
			want:    "new",
		},
		"one of two names differs": {
			known:   []identity.Text{marked("f", 9, "", "id:1", "part:3")},
			results: []identity.Text{marked("f", 9, "", "id:1", "part:4")},
			want:    "new",
		},
		"other names and versions do not contradict": {
			known:   []identity.Text{marked("f", 9, "", "id/v1:1"), marked("f", 30, "", "id/v1:2")},
			results: []identity.Text{marked("f", 10, "", "id/v2:7"), marked("f", 31, "", "id/v2:8")},
			want:    "0 message, 1 message",
		},
		"the tool has begun to write fingerprints": {
			known:   []identity.Text{marked("f", 9, "")},
			results: []identity.Text{marked("f", 10, "", "id:1")},
			want:    "0 message",
		},
		"the fingerprint tells which of two moved": {
			known:   []identity.Text{best(said(marked("f", 9, ""), "old"), "id:1"), best(said(marked("f", 9, ""), "old"), "id:2")},
			results: []identity.Text{best(said(marked("f", 80, ""), "new"), "id:2"), best(said(marked("f", 90, ""), "new"), "id:1")},
			want:    "1 tool_fingerprint, 0 tool_fingerprint",
		},
		"fingerprints are evidence in another file, too": {
			known:   []identity.Text{marked("x/f", 9, "", "id:1")},
			results: []identity.Text{marked("y/f", 30, "", "id:1")},
			want:    "0 moved_file:message",
		},
		"the hash of a line is code: it was edited": {
			known:   []identity.Text{best(marked("f", 9, ""), "primaryLocationLineHash:ab:1")},
			results: []identity.Text{best(marked("f", 9, ""), "primaryLocationLineHash:cd:1")},
			want:    "0 shape",
		},
		"the hash of a line is code: this is another line": {
			known:   []identity.Text{best(marked("f", 9, ""), "primaryLocationLineHash:ab:1")},
			results: []identity.Text{best(marked("f", 25, ""), "primaryLocationLineHash:cd:1")},
			want:    "new",
		},
		"the number of equal lines before is no evidence": {
			known: []identity.Text{best(marked("f", 9, ""), "primaryLocationLineHash:ab:1"), best(marked("f", 20, ""),
				"primaryLocationLineHash:ab:2")},
			results: []identity.Text{best(marked("f", 20, ""), "primaryLocationLineHash:ab:1")},
			want:    "1 code",
		},
		"a resource is fixed": {
			known:   []identity.Text{marked("f", 1, "Deployment/web"), marked("f", 1, "Deployment/db")},
			results: []identity.Text{marked("f", 1, "Deployment/db")},
			want:    "1 message",
		},
		"another resource on the same line": {
			known:   []identity.Text{marked("f", 1, "Deployment/web"), marked("f", 1, "Deployment/db")},
			results: []identity.Text{marked("f", 1, "Deployment/db"), marked("f", 1, "Deployment/cache")},
			want:    "1 message, new",
		},
		"a resource whose message has changed": {
			known:   []identity.Text{marked("f", 1, "Deployment/web"), marked("f", 1, "Deployment/db")},
			results: []identity.Text{said(marked("f", 1, "Deployment/db"), "runs as root"), said(marked("f", 90, "Deployment/web"), "runs as root")},
			want:    "1 logical, 0 logical",
		},
		"names of resources look like names of code": {
			known:   []identity.Text{marked("main.tf", 1, "aws_s3_bucket.logs")},
			results: []identity.Text{marked("main.tf", 20, "aws_s3_bucket.data")},
			want:    "new",
		},
		"a plain name in a manifest": {
			known:   []identity.Text{marked("k/deploy.yaml", 1, "web")},
			results: []identity.Text{marked("k/deploy.yaml", 1, "db")},
			want:    "new",
		},
		"a resource of a template": {
			known:   []identity.Text{marked("stack.template", 1, "AWS::S3::Bucket.Logs")},
			results: []identity.Text{marked("stack.template", 1, "AWS::S3::Bucket.Data")},
			want:    "new",
		},
		"a resource in a program": {
			known:   []identity.Text{kind(identity.KindResource, marked("stack.ts", 1, "Stack.Logs"))},
			results: []identity.Text{kind(identity.KindResource, marked("stack.ts", 1, "Stack.Data"))},
			want:    "new",
		},
		"a resource without a file": {
			known:   []identity.Text{marked("", 1, "bucket.logs")},
			results: []identity.Text{marked("", 1, "bucket.data")},
			want:    "new",
		},
		"a function whose name has slashes was renamed": {
			known:   []identity.Text{kind(identity.KindCode, marked("f.go", 9, "acme.test/web.Handle"))},
			results: []identity.Text{kind(identity.KindCode, marked("f.go", 9, "acme.test/web.Serve"))},
			want:    "0 shape",
		},
		"the code of another resource looks alike": {
			known:   []identity.Text{code(marked("main.tf", 1, "aws_s3_bucket.logs"), fmt.Sprintf(bucket, "logs"))},
			results: []identity.Text{code(marked("main.tf", 1, "aws_s3_bucket.data"), fmt.Sprintf(bucket, "data"))},
			want:    "new",
		},
		"the code of a resource was edited": {
			known:   []identity.Text{code(marked("main.tf", 1, "aws_s3_bucket.logs"), fmt.Sprintf(bucket, "logs"))},
			results: []identity.Text{code(marked("main.tf", 2, "aws_s3_bucket.logs"), fmt.Sprintf(bucket, "logs")+" # kept")},
			want:    "0 line",
		},
		"a function was renamed": {
			known:   []identity.Text{marked("f", 9, "Boot.main(String[])"), marked("f", 40, "Boot.stop()")},
			results: []identity.Text{marked("f", 9, "Boot.start(String[])"), marked("f", 40, "Boot.stop()")},
			want:    "0 shape, 1 message",
		},
		"another function has the same problem": {
			known:   []identity.Text{marked("f", 9, "Boot.main(String[])"), marked("f", 40, "Boot.stop()")},
			results: []identity.Text{marked("f", 40, "Boot.stop()"), marked("f", 90, "Boot.read()")},
			want:    "1 message, new",
		},
		"code says more than the name": {
			known:   []identity.Text{code(marked("f", 9, "Deployment/web"), md5)},
			results: []identity.Text{code(marked("f", 30, "Deployment/site"), md5)},
			want:    "0 snippet",
		},
		"the name tells equal code apart": {
			known:   []identity.Text{code(marked("f", 9, "A.a()"), md5), code(marked("f", 20, "B.b()"), md5)},
			results: []identity.Text{said(code(marked("f", 60, "B.b()"), md5), "other"), said(code(marked("f", 99, "A.a()"), md5), "other")},
			want:    "1 snippet, 0 snippet",
		},
		"the version of a package is not its name": {
			known:   []identity.Text{marked("f", 1, "pkg:npm/%40acme/ui@1.0.0?a=b")},
			results: []identity.Text{marked("f", 1, "pkg:npm/%40acme/ui@1.0.1?a=b")},
			want:    "0 message",
		},
		"a digest says nothing": {
			known:   []identity.Text{marked("f", 1, "web:1@sha256:"+strings.Repeat("1d8e", 16)+":/lib/apk")},
			results: []identity.Text{marked("f", 1, "web:2@sha256:"+strings.Repeat("73ac", 16)+":/lib/apk")},
			want:    "0 message",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joined(identity.Match(knownOf(c.known), evidenceOf(c.results), identity.Options{})); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// values are the values of all named fingerprints.
func values(t identity.Text) map[string]string {
	values := map[string]string{}
	for _, print := range append([]string{t.ToolFingerprint}, t.Fingerprints...) {
		if name, value, ok := strings.Cut(print, ":"); ok {
			values[name] = value
		}
	}
	return values
}

func TestContradictingFingerprintsNeverJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(texts(), 0, 40).Draw(t, "before")
		after := rapid.SliceOfN(texts(), 0, 40).Draw(t, "after")
		known := knownOf(before)
		for i := range known {
			known[i].Open = rapid.IntRange(0, 3).Draw(t, "gone") > 0
		}
		o := identity.Options{}
		if rapid.Bool().Draw(t, "known files") {
			o.LookedAt = func(path uint64) bool { return path != identity.PathHash("f") }
			o.NewFile = func(path uint64) bool { return path == identity.PathHash("h") }
			o.Renamed = map[uint64]bool{identity.PathHash("g"): true}
		}
		for i, j := range identity.Match(known, evidenceOf(after), o) {
			if j.Known < 0 {
				continue
			}
			was, is := before[j.Known], after[i]
			for name, value := range values(was) {
				if now, both := values(is)[name]; both && now != value {
					t.Fatalf("%+v is joined with %+v by %s", is, was, j.Rung)
				}
			}
			sameCode := was.Snippet == is.Snippet && was.Snippet != ""
			if !sameCode && strings.Contains(was.Logical, "/") && strings.Contains(is.Logical, "/") && is.Logical != was.Logical &&
				!strings.HasSuffix(j.Rung, identity.RungMatchBasedID) && !strings.HasSuffix(j.Rung, identity.RungToolFingerprint) {
				t.Fatalf("%+v is joined with another resource, %+v, by %s", is, was, j.Rung)
			}
		}
	})
}

func TestKindOf(t *testing.T) {
	for _, c := range []struct{ name, file, word, want string }{
		{"web", "stack.ts", "resource", identity.KindResource}, {"web", "stack.ts", "Object", identity.KindResource},
		{"logs", "stack.ts", "aws_s3_bucket", identity.KindResource}, {"logs", "main.tf", "resource", ""}, {"Pod/web", "a.go", "resource", ""},
		{"web", "stack.ts", "", ""}, {"a.b", "a.go", "function", ""}, {"acme/web.Get", "a.go", "Function", identity.KindCode},
		{"a.b", "", "method", identity.KindCode}, {"acme/web", "a.go", "package", ""}, {"web", "serverless.yml", "function", ""}, {"", "", "resource", ""},
	} {
		if got := identity.KindOf(c.name, c.file, c.word); got != c.want {
			t.Errorf("%s %q in %q is %q, want %q", c.word, c.name, c.file, got, c.want)
		}
	}
}
