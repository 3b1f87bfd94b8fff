package sarif_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// located is a run with one result at an artifact location, and more members of the run.
func located(location, members string) string {
	if members != "" {
		members = "," + members
	}
	return run(`"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":
		{"artifactLocation":` + location + `,"region":{"startLine":1}}}]}]` + members)
}

func TestPaths(t *testing.T) {
	const bases = `"originalUriBaseIds":{"SRCROOT":{"uri":"file:///w/repo/"},"LIB":{"uri":"lib/","uriBaseId":"SRCROOT"},
		"A":{"uri":"a/","uriBaseId":"B"},"B":{"uri":"b/","uriBaseId":"A"},"NONE":{"description":{"text":"not said"}},
		"SLASH":{"uri":"file:///"},"WEB":{"uri":"https://git.acme.test/"},"REL":{"uri":"sub"}}`
	for _, c := range []struct{ location, members, want string }{
		{`{"uri":"a/b.go"}`, "", "a/b.go"},
		{`{"uri":"./a//b/../c.go"}`, "", "a/c.go"},
		{`{"uri":"a\\b\\c.cs"}`, "", "a/b/c.cs"},
		{`{"uri":"a%20b/%C3%A9.go"}`, "", "a b/é.go"},
		{`{"uri":"100%.go"}`, "", "100%.go"},
		{`{"uri":"file:///x/a.go"}`, "", "/x/a.go"},
		{`{"uri":"file:/x/a.go"}`, "", "/x/a.go"},
		{`{"uri":"file://localhost/x/a.go"}`, "", "/x/a.go"},
		{`{"uri":"FILE:///c:/x/a.go"}`, "", "C:/x/a.go"},
		{`{"uri":"c:\\x\\a.go"}`, "", "C:/x/a.go"},
		{`{"uri":"file://src/a.go"}`, "", "src/a.go"},
		{`{"uri":"https://kim:pw@git.acme.test/a?x=1"}`, "", "https://git.acme.test/a?x=1"},
		{`{"uri":"app/[id]/page.tsx"}`, "", "app/[id]/page.tsx"},
		{`{"uri":"C#/Program.cs"}`, "", "C#/Program.cs"},
		{`{"uri":""}`, "", ""},
		{`{"uri":"."}`, "", ""},
		{`null`, "", ""},
		{`{"uri":"file:///w/repo/a.go"}`, bases, "a.go"},
		{`{"uri":"file:///w/repo2/a.go"}`, bases, "/w/repo2/a.go"},
		{`{"uri":"file:///w/my%20repo/a.go"}`, `"originalUriBaseIds":{"SRCROOT":{"uri":"/w/my repo"}}`, "a.go"},
		{`{"uri":"c:\\Work\\a.go"}`, `"originalUriBaseIds":{"SRCROOT":{"uri":"C:\\Work"}}`, "a.go"},
		{`{"uri":"x.go","uriBaseId":"LIB"}`, bases, "lib/x.go"},
		{`{"uri":"../x.go","uriBaseId":"LIB"}`, bases, "x.go"},
		{`{"uri":"x.go","uriBaseId":"NONE"}`, bases, "x.go"},
		{`{"uri":"x.go","uriBaseId":"SLASH"}`, bases, "x.go"},
		{`{"uri":"w/repo/x.go","uriBaseId":"SLASH"}`, bases, "x.go"},
		{`{"uri":"x.go","uriBaseId":"REL"}`, bases, "sub/x.go"},
		{`{"uri":"x.go","uriBaseId":"WEB"}`, bases, "x.go"},
		{`{"uri":"file:///b/c/a.go"}`, `"invocations":[{"workingDirectory":{"uri":"file:///b"}}]`, "c/a.go"},
		{`{"uri":"/b/c/a.go"}`, `"invocations":[{"workingDirectory":{"uri":"file:///b/"}}]`, "c/a.go"},
		{`{"uri":"/b/a.go"}`, `"invocations":[{"workingDirectory":{"uri":"file:///"}}]`, "/b/a.go"},
		{`{"index":1}`, `"artifacts":[7,{"location":{"uri":"x.go","uriBaseId":"LIB"}}],` + bases, "lib/x.go"},
		{`{"index":5}`, `"artifacts":[]`, ""},
		{`{"index":-1}`, ``, ""},
	} {
		if r := only(t, read(t, located(c.location, c.members))); r.Path != c.want {
			t.Errorf("%s: path is %q, want %q", c.location, r.Path, c.want)
		}
	}
	// A cycle of bases ends.
	only(t, read(t, located(`{"uri":"x.go","uriBaseId":"A"}`, bases)))
}

// A path that leaves the checkout is kept, and the run says how many there are.
func TestPathsThatClimbAreKept(t *testing.T) {
	const base = `"originalUriBaseIds":{"SRCROOT":{"uri":"file:///w/repo/"}}`
	for _, c := range []struct{ location, members, want, warning string }{
		{`{"uri":"../../path/ec2.tf"}`, "", "path/ec2.tf", `1 paths leave the repository by ".."`},
		{`{"uri":"a/../../b.go"}`, base, "b.go", `".."`},
		{`{"uri":"%2e%2e/a.go"}`, base, "a.go", `".."`},
		{`{"uri":"..%2fa.go"}`, base, "a.go", `".."`},
		{`{"uri":"..\\a.go"}`, base, "a.go", `".."`},
		{`{"uri":"..%5ca.go"}`, base, "a.go", `".."`},
		{`{"uri":".."}`, base, "", `".."`},
		{`{"uri":"../../etc/passwd","uriBaseId":"SRCROOT"}`, base, "etc/passwd", `".."`},
		{`{"uri":"file:///w/repo/../../etc/passwd"}`, base, "/etc/passwd", "1 paths are absolute, such as /etc/passwd"},
		{`{"uri":"../lib/x.go"}`, base + `,"invocations":[{"workingDirectory":{"uri":"file:///w/repo/a/b/"}}]`, "a/lib/x.go", ""},
		{`{"uri":"https://git.acme.test/a/../../x?y=../z"}`, base, "https://git.acme.test/x?y=../z", ""},
		{`{"uri":"` + strings.Repeat("x", 5000) + `"}`, "", strings.Repeat("x", 4093) + "…", "1 paths are cut after 4096 bytes"},
	} {
		o := read(t, located(c.location, c.members))
		if r := only(t, o); r.Path != c.want {
			t.Errorf("%.60s: path is %q, want %q", c.location, r.Path, c.want)
		}
		warnings := strings.Join(o.report.Runs[0].Warnings, "; ")
		if !strings.Contains(warnings, c.warning) || c.warning == "" && warnings != "" {
			t.Errorf("%.60s: warnings %q, want %q", c.location, warnings, c.warning)
		}
	}
}

// No report can make a path leave the checkout or contain backslashes.
func TestPathsNeverClimb(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		segment := rapid.SampledFrom([]string{"..", ".", "a", "%2e%2e", "b%2fc", "%5c", "", "C:", "file:", "x.go"})
		var uri strings.Builder
		for _, s := range rapid.SliceOfN(segment, 1, 8).Draw(rt, "segments") {
			uri.WriteString(s)
			uri.WriteString(rapid.SampledFrom([]string{"/", `\\`, "//"}).Draw(rt, "separator"))
		}
		location := fmt.Sprintf(`{"uri":"%s","uriBaseId":"%s"}`, uri.String(), rapid.SampledFrom([]string{"", "R", "S"}).Draw(rt, "base"))
		o := read(t, located(location, `"originalUriBaseIds":{"R":{"uri":"file:///w/repo/"},"S":{"uri":"s/"}}`))
		for _, r := range o.results {
			for _, part := range strings.Split(r.Path, "/") {
				if part == ".." || strings.Contains(part, `\`) {
					rt.Fatalf("%s gives %q", location, r.Path)
				}
			}
		}
	})
}
