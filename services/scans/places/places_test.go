package places_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/scans/places"
)

func resolve(r *places.Resolver, uri string) (string, places.Fault) {
	decoded := places.Decode(uri)
	return r.Resolve(decoded, decoded)
}

func TestCheckoutRoot(t *testing.T) {
	for _, c := range []struct{ root, uri, want string }{
		{"/builds/acme/web", "/builds/acme/web/a.go", "a.go"},
		{"/builds/acme/web/", "file:///builds/acme/web/a%20b.go", "a b.go"},
		{"/builds/acme/web", "/builds/acme/web", ""},
		{"/builds/acme/web", "/builds/acme/website/a.go", "/builds/acme/website/a.go"},
		{"file:///builds/acme/my%20web", "/builds/acme/my web/a.go", "a.go"},
		{"/builds/100%25", "/builds/100%2525/a.go", "a.go"},
		{`c:\agent\Web`, "file:///C:/Agent/web/src/a.cs", "src/a.cs"},
		{"C:/agent/web", `c:\agent\web\src\a.cs`, "src/a.cs"},
		{"C:/agent/web", `\\?\C:\agent\web\a.cs`, "a.cs"},
		{"C:/agent/web", "file:///C%3A/agent/web/a.cs", "a.cs"},
		{"/Agent/web", "/agent/web/a.go", "/agent/web/a.go"},
		{`\\host\share`, `\\host\share\a.cs`, "a.cs"},
		{`\\host\share`, "file://host/share/a.cs", "a.cs"},
		{`\\host\share`, "file:////host/share/a.cs", "a.cs"},
		{`\\host\share`, `\\?\UNC\host\share\a.cs`, "a.cs"},
		{"file://host/share", `\\host\share\a.cs`, "a.cs"},
		{"/src", "file://src/a.go", "src/a.go"},
		{"/w", "jar:file:///w/lib/a.jar!/com/B.class", "lib/a.jar!/com/B.class"},
		{"/home/ci/proj", "file://agent-1/home/ci/proj/src/a.go", "src/a.go"},
		{"/home/ci/proj", "file://agent-1.corp.example/home/ci/proj/src/a.go", "src/a.go"},
		{"/home/ci/proj", "file://agent-1/home/ci/other/a.go", "agent-1/home/ci/other/a.go"},
		{"/src", "file://web/src/a.go", "web/src/a.go"},
		{"/src", "file://build.corp.example/src/a.go", "a.go"},
		{"/src", "file://3f2a9c1b77e0/src/a.go", "a.go"},
		{`\\build-01\c$\proj`, "file://BUILD-01/C$/Proj/src/a.go", "src/a.go"},
		{`\\build-01\c$\proj`, `\\BUILD-01\c$\proj\src\a.go`, "src/a.go"},
		{`C:\proj`, "file://BUILD-01/c$/proj/src/a.go", "src/a.go"},
		{`C:\proj`, "file://BUILD-01/C:/proj/src/a.go", "src/a.go"},
		{"/path", "../../path/ec2.tf", "ec2.tf"},
	} {
		if got, _ := resolve(places.New(places.Given{CheckoutRoot: c.root}), c.uri); got != c.want {
			t.Errorf("%s in %s is %q, want %q", c.uri, c.root, got, c.want)
		}
	}
}

func TestPathPrefix(t *testing.T) {
	given := places.Given{CheckoutRoot: "/src", PathPrefix: `services\web\`}
	for uri, want := range map[string]string{
		"a.go":                   "services/web/a.go",
		"services/web/a.go":      "services/web/services/web/a.go", // as the caller says
		"../lib/a.go":            "services/lib/a.go",
		"../../a.go":             "a.go",
		"../..":                  "",
		"/src/a.go":              "services/web/a.go", // a part of the repository is mounted
		"/src/services/web/a.go": "services/web/a.go", // the whole repository is mounted
		"/usr/include/a.h":       "/usr/include/a.h",
		"":                       "",
		"/":                      "",
		"file:///":               "",
		"C:/":                    "",
		`C:\`:                    "",
	} {
		if got, fault := resolve(places.New(given), uri); got != want || fault == places.Climbs {
			t.Errorf("%s is %q with fault %d, want %q", uri, got, fault, want)
		}
	}
	if got, fault := resolve(places.New(given), "../../../a.go"); got != "a.go" || fault != places.Climbs {
		t.Errorf("above the repository: %q, fault %d", got, fault)
	}
}

func TestCheck(t *testing.T) {
	for _, given := range []places.Given{
		{}, {CheckoutRoot: "/w"}, {CheckoutRoot: `D:\a`}, {CheckoutRoot: "file:///w/x"}, {CheckoutRoot: `\\host\share`},
		{PathPrefix: "services/web"}, {PathPrefix: `services\web\`}, {PathPrefix: "./web"}, {PathPrefix: "a..b"},
	} {
		if field, err := given.Check(); err != nil {
			t.Errorf("%+v: %s %v", given, field, err)
		}
	}
	for _, root := range []string{"/", "//", "w", "./w", "..", `C:\`, "C:", "file:///", "file://w"} {
		if field, err := (places.Given{CheckoutRoot: root}).Check(); field != "checkout_root" || err == nil {
			t.Errorf("checkout root %q is accepted", root)
		}
	}
	for _, prefix := range []string{"/w", `\w`, "C:/w", "..", "../w", "w/../x", `w\..`, "a\nb", "file:///w"} {
		if field, err := (places.Given{PathPrefix: prefix}).Check(); field != "path_prefix" || err == nil {
			t.Errorf("prefix %q is accepted", prefix)
		}
	}
}

// FuzzResolve checks for any texts: no panic, no "..", and no absolute path below the root of the caller.
func FuzzResolve(f *testing.F) {
	for _, uri := range []string{
		"a/../../b", "file://host/share/x", "file:///C:/x", `\\?\C:\x`, `\\?\UNC\h\s\x`, "jar:file:/x!/y", "%2e%2e/x", "/w/x", "C:x", "///", "file:",
		"file://./../x", "..\\..", "/w/../w/x", "file://localhost//w/x",
	} {
		f.Add(uri, "/w", "p/q", "SRC")
		f.Add(uri, `C:\w`, "", "/w")
		f.Add(uri, `\\h\s`, "p", `\\h\s\t`)
	}
	f.Fuzz(func(t *testing.T, uri, root, prefix, base string) {
		given := places.Given{CheckoutRoot: root, PathPrefix: prefix, Project: "acme/web"}
		if _, err := given.Check(); err != nil {
			return
		}
		r := places.New(given)
		r.AddRoot(places.Decode(base))
		r.AddStart(places.Decode(base))
		own := places.Decode(uri)
		for _, joined := range []string{own, places.Decode(base) + "/" + own} {
			r.Guess([]string{own, joined})
			checkPath(t, r, own, joined, root)
		}
	})
}

func checkPath(t interface{ Fatalf(string, ...any) }, r *places.Resolver, own, joined, root string) {
	got, fault := r.Resolve(own, joined)
	for part := range strings.SplitSeq(got, "/") {
		if part == ".." {
			t.Fatalf("%q, %q in %q is %q", own, joined, root, got)
		}
	}
	if fault == places.Absolute && !places.IsAbsolute(got) || fault != places.Absolute && strings.HasPrefix(got, "/") {
		t.Fatalf("%q, %q in %q is %q with fault %d", own, joined, root, got, fault)
	}
	if root != "" && fault == places.Absolute && strings.HasPrefix(got, root+"/") {
		t.Fatalf("%q, %q in %q is still absolute: %q", own, joined, root, got)
	}
}

// Whatever a tool writes before and after the name of a file, the name stays.
func TestTheFileIsNeverLost(t *testing.T) {
	segment := rapid.SampledFrom([]string{"..", ".", "a", "%2e%2e", "b%2fc", "%5c", "", "C:", "w", "src", "builds", "x.go"})
	heads := []string{"", "/", "//", "file:", "file:/", "file://", "file:///", "file:////", `\\`, `\\?\`, "C:/", `c:\`, "jar:file:/a.jar!/"}
	rapid.Check(t, func(rt *rapid.T) {
		uri := rapid.SampledFrom(heads).Draw(rt, "head")
		for _, s := range rapid.SliceOfN(segment, 0, 6).Draw(rt, "segments") {
			uri += s + rapid.SampledFrom([]string{"/", `\`, "//"}).Draw(rt, "separator")
		}
		uri += "main.go"
		given := places.Given{
			CheckoutRoot: rapid.SampledFrom([]string{"", "/w", "C:/w", `\\w\src`}).Draw(rt, "root"),
			PathPrefix:   rapid.SampledFrom([]string{"", "p", "p/q"}).Draw(rt, "prefix"),
		}
		r := places.New(given)
		r.AddRoot(rapid.SampledFrom([]string{"", "/a", "///w/src", "C:/a"}).Draw(rt, "declared"))
		decoded := places.Decode(uri)
		checkPath(rt, r, decoded, decoded, given.CheckoutRoot)
		if got, _ := r.Resolve(decoded, decoded); got != "main.go" && !strings.HasSuffix(got, "/main.go") && got != "C:/main.go" {
			rt.Fatalf("%q is %q", uri, got)
		}
	})
}

func TestPathsWithAHost(t *testing.T) {
	for _, c := range []struct {
		uri, want string
		fault     places.Fault
	}{
		{"file://runner/builds/g/p/src/a.go", "src/a.go", 0},
		{"file://runner-7.corp.example/home/runner/work/r/r/src/a.go", "src/a.go", 0},
		{"file://BUILD-01/D$/a/1/s/src/a.cs", "src/a.cs", 0},
		{"file://agent-1/home/ci/proj/a.go", "agent-1/home/ci/proj/a.go", places.OnHost},
		{"file://web/src/a.go", "web/src/a.go", places.OnHost},
		{"file://a.go", "a.go", places.OnHost},
		{"file:///src/a.go", "/src/a.go", places.Absolute},
		{"src/a.go", "src/a.go", 0},
	} {
		r := places.New(places.Given{})
		if c.fault == 0 {
			r.Guess([]string{places.Decode(c.uri), "b.go"})
		}
		if got, fault := resolve(r, c.uri); got != c.want || fault != c.fault {
			t.Errorf("%s is %q with fault %d, want %q with %d", c.uri, got, fault, c.want, c.fault)
		}
	}
	r := places.New(places.Given{})
	if guess, ok := r.Guess([]string{places.Decode("file://web/src/a.go"), places.Decode("file://db/src/b.go")}); ok {
		t.Errorf("guessed %s", guess.Root)
	}
}
