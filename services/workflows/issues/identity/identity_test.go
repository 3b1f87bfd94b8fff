package identity_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/workflows/issues/identity"
)

func TestSameEvidence(t *testing.T) {
	const base = `rows = db.execute("SELECT * FROM users WHERE id = " + uid, timeout=30)`
	for _, same := range []string{
		"\t\t" + base,
		`42: ` + base,
		`  L117 | ` + base,
		"+57|" + base,
		`rows=db.execute('SELECT * FROM users WHERE id = '+uid,timeout=60)`,
		"rows = db.execute(\n    “SELECT * FROM users WHERE id = ”\n    + uid,\n    timeout=0x3C)\n",
		"rows = db.execute(\u00a0`SELECT * FROM users WHERE id = ` + \u200buid, timeout=1_000)",
	} {
		if a, b := identity.Evidence(base), identity.Evidence(same); a != b {
			t.Errorf("%q and %q differ:\n%s\n%s", base, same, a, b)
		}
	}
	for _, other := range []string{
		strings.Replace(base, "uid", "name", 1), strings.Replace(base, "execute", "executemany", 1), strings.Replace(base, "id =", "id <>", 1),
	} {
		if identity.Evidence(base) == identity.Evidence(other) {
			t.Errorf("%q and %q are the same", base, other)
		}
	}
}

func TestEvidenceKeepsNames(t *testing.T) {
	for text, want := range map[string]string{
		"md5(x)":                           "md5(x)",
		"sha256 (x)":                       "sha256(x)",
		"return  a ? b : c":                "return a?b:c",
		"commit 3f2a9c1d77 by deadbeef":    "commit 0 by deadbeef",
		"v = 3.14 * 10px":                  "v=0*0",
		"":                                 "",
		"ﬁle\x00name":                      "file name",
		"x := \"3f2a9c1e-9d2b-4e1f-a7c6\"": `x:="0-0-0-a7c6"`,
	} {
		if got := identity.Evidence(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestFileAndClass(t *testing.T) {
	for text, want := range map[string]string{
		"./app/db.py": "app/db.py", "/app//db.py": "app/db.py", `app\db.py`: "app/db.py", "../../etc/passwd": "etc/passwd", " ": "", "a/../b": "b",
	} {
		if got := identity.File(text); got != want {
			t.Errorf("file %q became %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"SQL Injection": "sql-injection", "sql_injection": "sql-injection", "CWE-89: SQL": "cwe-89-sql", "": ""} {
		if got := identity.Class(text); got != want {
			t.Errorf("class %q became %q, want %q", text, got, want)
		}
	}
}

// code generates lines of code.
func code() *rapid.Generator[[]string] {
	line := rapid.StringMatching(`[a-z_]{1,8}(\.[a-z]{1,6})?\([a-zA-Z_+ "']{0,20}\)(;| \{)?`)
	return rapid.SliceOfN(line, 1, 8)
}

// Code that moves inside its file, or changes indentation or line numbers, keeps its identity.
func TestMovedCodeKeepsItsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := code().Draw(t, "code")
		first := rapid.IntRange(1, 5000).Draw(t, "first line")
		indent := strings.Repeat(rapid.SampledFrom([]string{" ", "\t"}).Draw(t, "indent"), rapid.IntRange(0, 9).Draw(t, "depth"))
		ending := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "ending")
		moved := make([]string, len(lines))
		for i, line := range lines {
			moved[i] = fmt.Sprintf("%d: %s%s", first+i, indent, line)
		}
		a := identity.Of(7, "app/db.py", "SQL injection", strings.Join(lines, "\n"))
		b := identity.Of(7, "./app/db.py", "sql-injection", strings.Join(moved, ending))
		if a != b {
			t.Fatalf("%q\n%q", lines, moved)
		}
	})
}

// Another project, file, class or evidence is another issue. Shifting text between two parts also changes the identity.
func TestEverythingElseChangesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.StringMatching(`[a-z]{1,5}(/[a-z]{1,5}){0,3}\.py`).Draw(t, "file")
		class := rapid.StringMatching(`[a-z]{1,8}(-[a-z]{1,8})?`).Draw(t, "class")
		evidence := strings.Join(code().Draw(t, "code"), "\n")
		is := identity.Of(7, file, class, evidence)
		for what, other := range map[string]string{
			"project": identity.Of(8, file, class, evidence), "file": identity.Of(7, file+"x", class, evidence),
			"class": identity.Of(7, file, class+"x", evidence), "evidence": identity.Of(7, file, class, evidence+"\nexit"),
			"a part moved": identity.Of(7, file+class, "", evidence),
		} {
			if other == is {
				t.Fatalf("another %s is the same issue", what)
			}
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add("app/db.py", "SQL injection", "42: q(\"x\" + y)")
	f.Add("..\\a\x00", "\xff", "\xf0\x28 0x1F \u202e ﬁ")
	f.Fuzz(func(t *testing.T, file, class, evidence string) {
		is := identity.Of(1, file, class, evidence)
		if is != identity.Of(1, file, class, evidence) || len(is) != 42 {
			t.Fatal(is)
		}
		name, kind, text := identity.File(file), identity.Class(class), identity.Evidence(evidence)
		if !utf8.ValidString(name+kind+text) || strings.ContainsRune(name+kind+text, 0) {
			t.Fatalf("%q %q %q", name, kind, text)
		}
		if identity.File(name) != name {
			t.Fatalf("%q is not normal", name)
		}
		if identity.Evidence("\t"+evidence+" \n") != text {
			t.Fatalf("white space around %q matters", evidence)
		}
	})
}
