package lockfiles

import (
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// goPrerelease is a version of Go such as 1.24rc2, which semantic versions write as 1.24.0-rc.2.
var goPrerelease = regexp.MustCompile(`^(\d+\.\d+)(rc|beta)(\d+)$`)

// readGoMod reads go.mod: the modules, after its replacements, and the standard library, which advisories call stdlib.
func readGoMod(f file) ([]entry, error) {
	mod, err := modfile.Parse("go.mod", f.content, nil)
	if err != nil {
		return nil, err
	}
	replaced := map[module.Version]module.Version{} // without a version: every version of the module
	for _, r := range mod.Replace {
		replaced[r.Old] = r.New
	}
	var entries []entry
	for _, r := range mod.Require {
		e := entry{line: r.Syntax.Start.Line, transitivity: Direct}
		if r.Indirect {
			e.transitivity = Transitive
		}
		target, ok := replaced[r.Mod]
		if !ok {
			target, ok = replaced[module.Version{Path: r.Mod.Path}]
		}
		if !ok {
			target = r.Mod
		}
		e.name, e.version = target.Path, target.Version // a directory has no version
		entries = append(entries, e)
	}
	switch {
	case mod.Toolchain != nil && strings.HasPrefix(mod.Toolchain.Name, "go"):
		version, _, _ := strings.Cut(strings.TrimPrefix(mod.Toolchain.Name, "go"), "-")
		entries = append(entries, stdlib(version, mod.Toolchain.Syntax.Start.Line))
	case mod.Go != nil:
		entries = append(entries, stdlib(mod.Go.Version, mod.Go.Syntax.Start.Line))
	}
	return entries, nil
}

func stdlib(version string, line int) entry {
	version = goPrerelease.ReplaceAllString(version, "$1.0-$2.$3")
	return entry{name: "stdlib", version: version, line: line, transitivity: Direct}
}
