package lockfiles

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/modfile"
)

var errNoJSON = errors.New("it is not a JSON document of this format")

// goMod reads the requirements of a module. Since Go 1.17 they name all packages that are built. OSV knows the standard
// library as stdlib.
func goMod(_ context.Context, s *source) (out []Package, err error) {
	file, err := modfile.ParseLax(s.name, s.content, nil)
	if err != nil {
		return nil, errors.New("it is not a go.mod file")
	}
	for _, r := range file.Require {
		out = append(out, Package{Name: r.Mod.Path, Version: r.Mod.Version, Transitivity: transitivity(!r.Indirect), Line: r.Syntax.Start.Line})
	}
	switch {
	case file.Toolchain != nil && strings.HasPrefix(file.Toolchain.Name, "go1"):
		version, _, _ := strings.Cut(strings.TrimPrefix(file.Toolchain.Name, "go"), "-")
		out = append(out, Package{Name: "stdlib", Version: version, Transitivity: transitivity(true), Line: file.Toolchain.Syntax.Start.Line})
	case file.Go != nil:
		out = append(out, Package{Name: "stdlib", Version: file.Go.Version, Transitivity: transitivity(true), Line: file.Go.Syntax.Start.Line})
	}
	return out, nil
}

// composerLock reads the packages of Composer. Required platform packages, such as php, are none.
func composerLock(_ context.Context, s *source) (out []Package, err error) {
	type entry struct {
		Name, Version string
		Require       map[string]string
	}
	var file struct {
		Packages []entry `json:"packages"`
		Dev      []entry `json:"packages-dev"`
	}
	if json.Unmarshal(s.content, &file, json.MatchCaseInsensitiveNames(true)) != nil {
		return nil, errNoJSON
	}
	all := append(file.Packages, file.Dev...)
	versions := map[string]string{}
	for _, p := range all {
		versions[p.Name] = p.Version
	}
	var manifest struct {
		Require map[string]string `json:"require"`
		Dev     map[string]string `json:"require-dev"`
	}
	lines := s.lines(func(line string) string { return strings.Trim(strings.TrimPrefix(line, `"name": `), `",`) })
	told := json.Unmarshal(s.sibling("composer.json"), &manifest) == nil
	for _, p := range all {
		one := Package{Name: p.Name, Version: strings.TrimPrefix(p.Version, "v"), Line: lines[p.Name]}
		for name := range p.Require {
			if version := versions[name]; version != "" {
				one.Children = append(one.Children, name+"@"+strings.TrimPrefix(version, "v"))
			}
		}
		if told {
			_, required := manifest.Require[p.Name]
			_, dev := manifest.Dev[p.Name]
			one.Transitivity = transitivity(required || dev)
		}
		out = append(out, one)
	}
	return out, nil
}

// lines returns the number of the first line for each key that key makes of lines without their indentation.
func (s *source) lines(key func(line string) string) map[string]int {
	numbers, n := map[string]int{}, 0
	for line := range strings.Lines(string(s.content)) {
		n++
		if text := key(strings.TrimSpace(line)); text != "" && numbers[text] == 0 {
			numbers[text] = n
		}
	}
	return numbers
}

// pipfileLock reads the packages of Pipenv. It does not tell which are direct; the Pipfile does.
func pipfileLock(_ context.Context, s *source) (out []Package, err error) {
	type group map[string]struct{ Version string }
	var file struct{ Default, Develop group }
	if json.Unmarshal(s.content, &file, json.MatchCaseInsensitiveNames(true)) != nil {
		return nil, errNoJSON
	}
	direct := readPipfile(s.sibling("Pipfile"))
	for _, some := range []group{file.Default, file.Develop} {
		for name, p := range some {
			one := Package{Name: name, Version: strings.TrimPrefix(p.Version, "==")}
			if direct != nil {
				one.Transitivity = transitivity(direct[pythonName(name)])
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// nugetLock reads the packages of NuGet for all frameworks. Projects of the solution are none.
func nugetLock(_ context.Context, s *source) (out []Package, err error) {
	type entry struct {
		Type, Resolved string
		Dependencies   map[string]string
	}
	var file struct {
		Dependencies map[string]map[string]entry
	}
	if json.Unmarshal(s.content, &file, json.MatchCaseInsensitiveNames(true)) != nil {
		return nil, errNoJSON
	}
	for _, framework := range file.Dependencies {
		for name, p := range framework {
			if strings.EqualFold(p.Type, "Project") {
				continue
			}
			one := Package{Name: name, Version: p.Resolved, Transitivity: transitivity(strings.EqualFold(p.Type, "Direct"))}
			for child := range p.Dependencies {
				if version := framework[child].Resolved; version != "" {
					one.Children = append(one.Children, child+"@"+version)
				}
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// property matches a reference to a property of a POM.
var property = regexp.MustCompile(`\$\{([^}]+)\}`)

// pom reads the direct dependencies of a Maven project whose version the file itself tells. Parents are not resolved.
func pom(_ context.Context, s *source) (out []Package, err error) {
	var file pomFile
	if xml.Unmarshal(s.content, &file) != nil {
		return nil, errors.New("it is not a POM")
	}
	values := map[string]string{}
	for _, p := range file.Properties.All {
		if value := strings.TrimSpace(p.Value); len(value) <= maxName {
			values[p.XMLName.Local] = value
		}
	}
	resolve := func(text string) string {
		for range 5 { // a property may name another one
			if len(text) > maxName {
				return ""
			}
			text = property.ReplaceAllStringFunc(text, func(ref string) string { return values[ref[2:len(ref)-1]] })
		}
		return strings.TrimSpace(text)
	}
	values["project.version"], values["project.groupId"] = cmp.Or(file.Version, file.Parent.Version), cmp.Or(file.GroupID, file.Parent.GroupID)
	lines := s.lines(func(line string) string {
		return strings.TrimSuffix(strings.TrimPrefix(line, "<artifactId>"), "</artifactId>")
	})
	managed := map[string]string{}
	for _, d := range file.Managed {
		managed[d.name()] = d.Version
	}
	for _, d := range file.Dependencies {
		version := d.Version
		if version == "" {
			version = managed[d.name()]
		}
		version = strings.Trim(resolve(version), "[]")
		if strings.ContainsAny(version, ",()") { // a range
			version = ""
		}
		out = append(out, Package{Name: resolve(d.name()), Version: version, Transitivity: transitivity(true), Line: lines[strings.TrimSpace(d.ArtifactID)]})
	}
	return slices.DeleteFunc(out, func(p Package) bool { return strings.HasPrefix(p.Name, ":") }), nil
}
