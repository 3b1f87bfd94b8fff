package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
)

// A variant of a source is a tool that says more about its results. It is computed from the code and the truth.
type variant func(tree *Tree, results []Result, ids []string)

// with returns a source whose reports say more.
func (s *Source) with(name string, v variant) *Source {
	more := *s
	more.Name, more.variant = name+": "+s.Name, v
	return &more
}

// dress adds what the variant says to all reports of the plan.
func (p *Plan) dress() {
	if p.Source.variant == nil {
		return
	}
	ids := make([]string, len(p.Before.Results))
	for i := range ids {
		ids[i] = fmt.Sprint("problem ", i)
	}
	p.Source.variant(p.Source.Tree, p.Before.Results, ids)
	for _, step := range p.After {
		if step.Report == p.Before {
			continue
		}
		ids := make([]string, len(step.Report.Results))
		for i := range ids {
			ids[i] = fmt.Sprint("new problem ", i)
		}
		for i, t := range step.Truth {
			if t.State == Here {
				ids[t.Result] = fmt.Sprint("problem ", i)
			}
		}
		p.Source.variant(step.Tree, step.Report.Results, ids)
	}
}

// withInstances is a tool that recognises its results itself, like Fortify: results that are not the same contradict.
func withInstances(_ *Tree, results []Result, ids []string) {
	for i := range results {
		results[i].prints = object{"instanceId/v1": hexOf(ids[i])}
	}
}

// withLineHashes adds what GitHub's upload action adds: the hash of the next hundred characters, and the number of
// equal hashes before.
func withLineHashes(tree *Tree, results []Result, _ []string) {
	files := map[string][]string{}
	for i, result := range results {
		hashes, known := files[result.File]
		if !known {
			hashes = lineHashes(tree.Files[result.File])
			files[result.File] = hashes
		}
		if result.Line <= len(hashes) {
			results[i].prints = object{"primaryLocationLineHash": hashes[result.Line-1]}
		}
	}
}

// hashedCharacters is how many characters a line hash covers.
const hashedCharacters = 100

func lineHashes(lines []Line) []string {
	hashes, seen := make([]string, len(lines)), map[string]int{}
	for i := range lines {
		var code []rune
		for _, line := range lines[i:] {
			for _, r := range line.Text {
				if !unicode.IsSpace(r) {
					code = append(code, r)
				}
			}
			if len(code) >= hashedCharacters {
				code = code[:hashedCharacters]
				break
			}
		}
		hash := hexOf(string(code))
		seen[hash]++
		hashes[i] = fmt.Sprintf("%s:%d", hash, seen[hash])
	}
	return hashes
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// withFunctions adds the function as logical location, like SpotBugs.
func withFunctions(tree *Tree, results []Result, _ []string) {
	files := map[string]*goFile{}
	for i, result := range results {
		g, known := files[result.File]
		if !known && isGo(result.File) {
			g = parseGo(result.File, tree.Text(result.File))
			files[result.File] = g
		}
		if g == nil {
			continue
		}
		for _, function := range g.functions() {
			if g.holds(function, result.Line) {
				results[i].logical = g.file.Name.Name + "." + function.Name.Name + "()"
			}
		}
	}
}

// dockerfileRules are rules of hadolint, which has one message for all places of a rule.
var dockerfileRules = []struct{ id, message string }{
	{"DL3006", "Always tag the version of an image explicitly"},
	{"DL3008", "Pin versions in apt get install. Instead of `apt-get install <package>` use `apt-get install <package>=<version>`"},
	{"DL3009", "Delete the apt lists (/var/lib/apt/lists) after installing something"},
	{"DL3013", "Pin versions in pip. Instead of `pip install <package>` use `pip install <package>==<version>`"},
	{"DL3059", "Multiple consecutive `RUN` instructions. Consider consolidation."},
}

const dockerfile = "Dockerfile"

// dockerfiles are many Dockerfiles with the same problems: nothing but the path and the line tells results apart.
func dockerfiles() *Source {
	var rules []any
	for _, rule := range dockerfileRules {
		rules = append(rules, object{"id": rule.id})
	}
	driver := object{"name": "hadolint", "rules": rules}
	lines, r := map[string]int{}, &Report{Tool: "hadolint", Version: "2.12.0", run: object{"tool": object{"driver": driver}}}
	for n := range 40 {
		file := fmt.Sprintf("services/s%d/%s", n, dockerfile)
		lines[file] = 60
		for i, rule := range dockerfileRules {
			if (n+i)%3 != 0 {
				r.Results = append(r.Results, dockerfileResult(rule.id, rule.message, file, 1+i*7+n%5))
			}
		}
	}
	return &Source{Name: "hadolint, Dockerfiles", Tree: UnknownCode(lines), Report: r, bare: true}
}

func dockerfileResult(rule, message, file string, line int) Result {
	raw := object{"ruleId": rule, "locations": []any{object{"physicalLocation": object{"region": object{}}}}}
	return Result{Rule: rule, Place: Place{file, line}, Message: message, raw: raw}
}

// replaceFiles deletes a third of the files with results. In other folders, new files of the same name come up with
// results of the same rules.
func replaceFiles(w *work) {
	for _, file := range some(w.random, w.files(), 0.33) {
		delete(w.tree.Files, file)
		w.replaced = append(w.replaced, file)
	}
}

// reportReplacements adds the results about the new files.
func reportReplacements(w *work, r *Report) {
	for _, file := range w.replaced {
		shift := w.random.IntN(20)
		for _, result := range w.before.Results {
			if result.File == file {
				r.Results = append(r.Results, dockerfileResult(result.Rule, result.Message, strings.Replace(file, "services/", "tools/", 1), result.Line+shift))
			}
		}
	}
}
