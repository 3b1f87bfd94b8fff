package ingest

import (
	"context"
	"path"
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// extensions are the extensions of files by language, in the scanner's terms.
var extensions = map[string]string{
	"apex": ".cls .trigger", "bash": ".bash .sh", "c": ".c .h", "cairo": ".cairo", "circom": ".circom", "clojure": ".clj .cljs .cljc .edn",
	"cpp": ".cc .cpp .cxx .c++ .h .hh .hpp .hxx .ino", "csharp": ".cs", "dart": ".dart", "elixir": ".ex .exs", "go": ".go", "hack": ".hack .hck .hh",
	"html": ".html .htm", "java": ".java", "javascript": ".cjs .js .jsx .mjs", "json": ".json .ipynb", "jsonnet": ".jsonnet .libsonnet",
	"julia": ".jl", "kotlin": ".kt .kts .ktm", "lisp": ".lisp .cl .el", "lua": ".lua", "move_on_aptos": ".move", "move_on_sui": ".move",
	"ocaml": ".ml .mli", "php": ".php .php3 .php4 .php5 .phtml .phps .tpl", "promql": ".promql", "protobuf": ".proto",
	"python": ".py .pyi", "python2": ".py .pyi", "python3": ".py .pyi", "ql": ".ql .qll", "r": ".r .R", "ruby": ".rb", "rust": ".rs", "scala": ".scala",
	"scheme": ".scm .ss", "solidity": ".sol", "swift": ".swift", "terraform": ".tf .hcl .tfvars", "typescript": ".ts .tsx .mts .cts",
	"vue": ".vue", "xml": ".xml .plist", "yaml": ".yaml .yml",
}

// mayBe reports whether a file may be of a language. Files without an extension say their language in their first line,
// and files of an unknown language may have any name.
func mayBe(file, language string) bool {
	extension := path.Ext(file)
	if language == "typescript" && (extension == ".js" || extension == ".jsx") {
		return true // read by the rules of both languages
	}
	known, ok := extensions[strings.ToLower(language)]
	return !ok || extension == "" || slices.Contains(strings.Fields(known), extension)
}

// partlyParsed returns what the scan could not parse of the languages that a file may have.
func partlyParsed(c *storev1.ScanCoverage, file string) (found []*storev1.PartlyParsed) {
	for _, p := range c.GetPartlyParsed() {
		if mayBe(file, p.GetLanguage()) {
			found = append(found, p)
		}
	}
	return found
}

// unlessPartlyParsed keeps a missing finding open if its file may be parsed only in part. The scanner does not say
// which files are. But if it could not parse exactly as much as in the last scan of the file, these are the same
// pieces: the finding, which that scan still reported, is not in them.
func (c *closer) unlessPartlyParsed(ctx context.Context, g *matches, id int64, file string, f decision) (decision, error) {
	if f != keepState && f.state != lifecycle.Fixed {
		return f, nil
	}
	now := partlyParsed(g.coverage.ScanCoverage, file)
	if len(now) == 0 {
		return f, nil
	}
	if f != keepState && c.scan.IsFullScan {
		last, _, err := g.absences.lastSearch(ctx, file)
		if err != nil {
			return keepState, err
		}
		if last != nil && samePieces(partlyParsed(last.ScanCoverage, file), now) && !contains(last.kept, id) {
			return f, nil
		}
	}
	g.kept = append(g.kept, id)
	return keepState, nil
}

func samePieces(a, b []*storev1.PartlyParsed) bool {
	return slices.EqualFunc(a, b, func(a, b *storev1.PartlyParsed) bool {
		return a.GetLanguage() == b.GetLanguage() && a.GetFiles() == b.GetFiles() && a.GetBytes() == b.GetBytes()
	})
}
